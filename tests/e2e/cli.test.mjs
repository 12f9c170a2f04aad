// The command line as a person uses it, and its exit status.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, test } from 'node:test'
import { Node, SPACE, until } from '../lib/node.mjs'

let node

before(async () => {
  node = await Node.start('cli')
}, { timeout: 180_000 })

after(async () => {
  await node?.stop()
}, { timeout: 60_000 })

const cases = [
  // says, arguments, exit status, stdout, stderr
  ['the answer', ['run', 'python3', '-c', 'print(6*7)'], 0, /^42\n$/, /^$/],
  ['options end at the command', ['run', 'sh', '-c', 'echo "$0 $1"', '-l', '--json'], 0, /^-l --json\n$/, /^$/],
  ['the exit status of the command', ['run', 'sh', '-c', 'exit 7'], 7, /^$/, /^$/],
  ['128 + n after a signal', ['run', 'sh', '-c', 'kill -KILL $$'], 137, /^$/, /^$/],
  ['127: no such command', ['run', 'no-such-command'], 127, /^$/, /no-such-command/],
  ['126: not a program', ['run', '/etc/passwd'], 126, /^$/, /passwd/],
  ['stderr is stderr', ['run', 'sh', '-c', 'echo oops >&2'], 0, /^$/, /^oops\n$/],
  ['variables', ['run', '-e', 'A=b c', 'sh', '-c', 'echo "$A"'], 0, /^b c\n$/, /^$/],
  ['user and folder', ['run', '-u', 'root', '-w', '/etc', 'sh', '-c', 'id -u; pwd'], 0, /^0\n\/etc\n$/, /^$/],
  ['kernel, user and network are its own', ['run', '--', 'sh', '-c', 'uname -r; id -un; ls /sys/class/net'], 0, /^\S+-cloud-amd64\nuser\nlo\n$/, /^$/],
  ['how long it took', ['run', '--timing', 'true'], 0, /^$/, /created in \d+ ms/],
  ['124: out of time', ['run', '--timeout', '1', 'sleep', '60'], 124, /^$/, /./],
  ['126: no such user', ['run', '-u', 'nobody-here', 'true'], 126, /^$/, /nobody-here/],
  ['126: no such folder', ['run', '-w', '/nothing', 'true'], 126, /^$/, /\/nothing/],
  ['no JSON where the output is the command\'s', ['run', '--json', 'true'], 125, /^$/, /--json/],
  ['an unknown template', ['run', '-t', 'nothing', 'true'], 125, /^$/, /template 'nothing' not found/],
  ['an unknown option', ['run', '--nonsense', 'true'], 125, /^$/, /nonsense/],
  ['an unknown command', ['fly'], 125, /^$/, /fly/],
  ['no command', ['run'], 125, /^$/, /COMMAND/],
  ['a sandbox that is not there', ['exec', 'inothing', 'true'], 125, /^$/, /inothing/],
  ['templates', ['template', 'ls'], 0, /\nbase +[0-9a-z]{12} +512 MiB +1 +4096 MiB\n/, /^$/],
  ['the help has an example', ['run', '--help'], 0, /Example:\n/, /^$/],
  ['the version', ['version'], 0, /^space \d+\.\d+\.\d+\n$/, /^$/],
  ['the version, as an option', ['--version'], 0, /^space \d+\.\d+\.\d+\n$/, /^$/],
  ['help, as a command', ['help', 'run'], 0, /^space run: /, /^$/],
]

for (const [says, args, code, stdout, stderr] of cases) {
  test(says, async () => {
    const done = await node.spaceStatus(...args)
    assert.equal(done.code, code, done.stderr)
    assert.match(done.stdout, stdout)
    assert.match(done.stderr, stderr)
  })
}

test('nothing is left of all those', async () => {
  assert.deepEqual(JSON.parse((await node.space('ps', '--json')).stdout), [])
})

test('keep, ps, exec, logs, kill', async () => {
  await node.space('run', '--keep', '--name', 'web', 'sh', '-c', 'echo kept >/tmp/file')
  const [one, ...more] = JSON.parse((await node.space('ps', '--json')).stdout)
  assert.equal(more.length, 0)
  const id = one.sandboxID
  assert.equal((await node.space('exec', 'web', 'cat', '/tmp/file')).stdout, 'kept\n')
  assert.equal((await node.space('exec', id.slice(0, 6), 'cat', '/tmp/file')).stdout, 'kept\n')
  await node.space('exec', '-u', 'root', id, 'sh', '-c', 'echo hello console >/dev/console')
  await until('the console says so', async () => (await node.space('logs', '--console', id)).stdout.includes('hello console'))
  await node.space('kill', 'web')
  assert.deepEqual(JSON.parse((await node.space('ps', '--json')).stdout), [])
  assert.equal((await node.spaceStatus('kill', id)).code, 125)
  assert.match((await node.spaceStatus('logs', id)).stderr, /has ended, and its log with it/)
})

test('output that cannot be written is an error; a reader that went is SIGPIPE', async () => {
  const into = (to) => new Promise((resolve) => {
    execFile('bash', ['-o', 'pipefail', '-c', `"$0" run seq 200000 ${to}`, SPACE], { env: node.env },
      (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }))
  })
  const full = await into('>/dev/full')
  assert.equal(full.code, 125)
  assert.match(full.stderr, /cannot write the command's output: No space left on device/)
  assert.deepEqual(await into('| head -1'), { code: 141, stdout: '1\n', stderr: '' })
})

test('stdin goes in, its end too', async () => {
  const child = node.spawn('run', 'wc', '-c')
  assert.match(await new Promise((resolve) => child.stdout.once('data', (d) => resolve(String(d)))), /^0\n/)
})

test('up a second time says that it runs; a taken port is one sentence', async () => {
  assert.match((await node.space('up')).stdout, /running already/)
  assert.match((await node.space('up', '--listen', '127.0.0.1:0')).stdout, /running already/)
  for (const another of [['--listen', '127.0.0.1:1'], ['--max-sandboxes', '3'], ['--accel', 'other']]) {
    const refused = await node.spaceStatus('up', ...another)
    assert.equal(refused.code, 125)
    assert.match(refused.stderr, /runs already.*`space down`/)
  }
  const other = new Node('cli-other')
  const done = await other.spaceStatus('up', '--listen', new URL(node.url).host)
  assert.equal(done.code, 125)
  assert.match(done.stderr, /port is taken/)
  assert.equal(done.stderr.trim().split('\n').length, 1)
})

test('bench create prints its figures', async () => {
  const figures = JSON.parse((await node.space('bench', 'create', '--json', '-n', '3')).stdout)
  assert.ok(JSON.stringify(figures).includes('p50'), JSON.stringify(figures))
  await until('nothing is left', async () => JSON.parse((await node.space('ps', '--json')).stdout).length === 0)
})

test('down, and then nothing answers', async () => {
  await node.space('down')
  assert.match((await node.space('env')).stderr, /no node runs .* now/)
  const done = await node.spaceStatus('ps')
  assert.equal(done.code, 125)
  assert.match(done.stderr, /no node runs/)
  await node.up()
})
