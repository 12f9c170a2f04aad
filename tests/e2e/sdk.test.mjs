// The E2B SDK as npm has it, told by three environment variables where the node is: life of a
// sandbox and commands in it.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { CommandExitError, FileNotFoundError, Sandbox, SandboxNotFoundError, TimeoutError } from 'e2b'
import { Node, until } from '../lib/node.mjs'

let node
let sandbox

before(async () => {
  node = await Node.start('e2e')
  sandbox = await Sandbox.create()
}, { timeout: 180_000 })

after(async () => {
  await node?.stop()
}, { timeout: 60_000 })

const run = (command, options) => sandbox.commands.run(command, options)

/* ---- commands ---- */

test('stdout and exit status 0', async () => {
  const done = await run("python3 -c 'print(6*7)'")
  assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['42\n', '', 0])
})

test('stderr stays apart', async () => {
  const done = await run('echo out; echo err >&2')
  assert.deepEqual([done.stdout, done.stderr], ['out\n', 'err\n'])
})

test('another exit status is an error that has all of it', async () => {
  await assert.rejects(run('echo so far; echo why >&2; exit 3'), (error) => {
    assert.ok(error instanceof CommandExitError)
    assert.deepEqual([error.exitCode, error.stdout, error.stderr], [3, 'so far\n', 'why\n'])
    return true
  })
})

test('variables of the command', async () => {
  const done = await run('echo "$GREETING, $WHO"', { envs: { GREETING: 'good day', WHO: "o'neil" } })
  assert.equal(done.stdout, "good day, o'neil\n")
})

test('variables of the sandbox, and those that say where one is', async () => {
  const other = await Sandbox.create({ envs: { COLOUR: 'blue' } })
  const done = await other.commands.run('echo $COLOUR $E2B_SANDBOX $E2B_SANDBOX_ID; COLOUR=x; echo $HOME $USER')
  await other.kill()
  assert.equal(done.stdout, `blue true ${other.sandboxId}\n/home/user user\n`)
})

test('working folder: given, by default the home', async () => {
  assert.equal((await run('pwd', { cwd: '/var/log' })).stdout, '/var/log\n')
  assert.equal((await run('pwd')).stdout, '/home/user\n')
})

test('a working folder that is not there', async () => {
  await assert.rejects(run('pwd', { cwd: '/no/such' }), /cwd '\/no\/such' does not exist/)
})

test('user: user by default, root on demand, sudo without a password', async () => {
  assert.equal((await run('id -un; id -u; groups')).stdout.split('\n').slice(0, 2).join(), 'user,1000')
  assert.equal((await run('id -u; echo $HOME', { user: 'root' })).stdout, '0\n/root\n')
  assert.equal((await run('sudo -n id -u')).stdout, '0\n')
})

test('a user that is not there', async () => {
  await assert.rejects(run('id', { user: 'nobody-here' }), /invalid username: 'nobody-here'/)
})

test('a command that outlives its time is ended, with all it started', async () => {
  await assert.rejects(run('sleep 987654 & sleep 987654', { timeoutMs: 1500 }), TimeoutError)
  await until('no sleep is left', async () => (await run('pgrep -xc sleep || true')).stdout === '0\n')
})

test('output as it comes', async () => {
  const seen = []
  const done = await run('for i in 1 2 3; do echo $i; sleep 0.2; done', { onStdout: (text) => seen.push(text) })
  assert.equal(done.stdout, '1\n2\n3\n')
  assert.ok(seen.length >= 2, `came in ${seen.length} pieces`)
})

test('UTF-8 and bytes of every value', async () => {
  assert.equal((await run("printf 'grüße, 世界 🚀'")).stdout, 'grüße, 世界 🚀')
  const sum = await run('head -c 100000 /dev/urandom >/tmp/x; sha256sum </tmp/x; base64 -w0 /tmp/x')
  const [digest, text] = sum.stdout.split('\n')
  const { createHash } = await import('node:crypto')
  assert.equal(createHash('sha256').update(Buffer.from(text, 'base64')).digest('hex'), digest.split(' ')[0])
})

test('much output arrives whole', async () => {
  const done = await run('seq 1 200000 | tee >(md5sum >&2)')
  const { createHash } = await import('node:crypto')
  await until('the sum is there', () => done.stderr.length > 0)
  assert.equal(createHash('md5').update(done.stdout).digest('hex'), done.stderr.split(' ')[0])
})

test('in the background: wait', async () => {
  const handle = await run('sleep 0.3; echo done; exit 0', { background: true })
  assert.ok(handle.pid > 0)
  assert.equal((await handle.wait()).stdout, 'done\n')
})

test('in the background: list, then kill true and false', async () => {
  const handle = await run('exec sleep 4242', { background: true })
  const listed = (await sandbox.commands.list()).find((p) => p.pid === handle.pid)
  assert.deepEqual([listed?.cmd, listed?.args.at(-1)], ['/bin/bash', 'exec sleep 4242'])
  assert.equal(await sandbox.commands.kill(handle.pid), true)
  await assert.rejects(handle.wait(), CommandExitError)
  await until('it is listed no more', async () => !(await sandbox.commands.list()).some((p) => p.pid === handle.pid))
  assert.equal(await sandbox.commands.kill(handle.pid), false)
})

test('stdin: send, close', async () => {
  const handle = await run('while read -r line; do echo "got $line"; done; echo end', { background: true, stdin: true })
  await sandbox.commands.sendStdin(handle.pid, 'one\n')
  await sandbox.commands.sendStdin(handle.pid, 'two\n')
  await until('both came back', () => handle.stdout === 'got one\ngot two\n')
  await sandbox.commands.closeStdin(handle.pid)
  assert.equal((await handle.wait()).stdout, 'got one\ngot two\nend\n')
})

test('stdin is empty where it was not asked for', async () => {
  assert.equal((await run('cat; echo end', { timeoutMs: 5000 })).stdout, 'end\n')
})

test('connect to what runs', async () => {
  const first = await run('read -r x; echo "second sees $x"', { background: true, stdin: true })
  const second = await sandbox.commands.connect(first.pid)
  await sandbox.commands.sendStdin(first.pid, 'this\n')
  assert.equal((await second.wait()).stdout, 'second sees this\n')
  await first.wait()
})

test('a client that goes away does not end the command', async () => {
  const handle = await run('sleep 1; echo was here >/tmp/left', { background: true })
  await handle.disconnect()
  await until('it went on', async () => (await run('cat /tmp/left 2>/dev/null || true')).stdout === 'was here\n')
})

test('twenty commands at once', async () => {
  const all = await Promise.all(Array.from({ length: 20 }, (_, i) => run(`echo ${i}`)))
  assert.deepEqual(all.map((done) => Number(done.stdout)), Array.from({ length: 20 }, (_, i) => i))
})

/* ---- the guest ---- */

test('its own kernel, only lo, no host in sight', async () => {
  const { readFileSync } = await import('node:fs')
  const host = readFileSync('/proc/sys/kernel/osrelease', 'utf8')
  const done = await run('uname -r; ls /sys/class/net; hostname')
  const [kernel, net] = done.stdout.split('\n')
  assert.match(kernel, /-cloud-amd64$/)
  assert.notEqual(kernel, host.trim())
  assert.equal(net, 'lo')
})

test('what a template promises is there', async () => {
  const wanted = 'bash sudo curl git python python3 pip3 node npm tput setfattr ps'
  assert.equal((await run(`for p in ${wanted}; do command -v $p >/dev/null || echo no $p; done`)).stdout, '')
  assert.equal((await run('node -p 6*7; git daemon --help >/dev/null 2>&1 || test -x /usr/lib/git-core/git-daemon && echo git')).stdout, '42\ngit\n')
  assert.equal((await run('python3 -m venv --without-pip /tmp/v && /tmp/v/bin/python -c "import ensurepip; print(1)"')).stdout, '1\n')
})

test('the clock is right', async () => {
  const guest = Number((await run('date +%s%N')).stdout) / 1e6
  assert.ok(Math.abs(guest - Date.now()) < 1000, `${guest - Date.now()} ms off`)
})

test('two sandboxes share no identity', async () => {
  const other = await Sandbox.create()
  const look = 'cat /etc/machine-id /proc/sys/kernel/random/boot_id; hostname; head -c 16 /dev/urandom | base64'
  const [a, b] = await Promise.all([run(look), other.commands.run(look)])
  await other.kill()
  const [one, two] = [a.stdout.split('\n'), b.stdout.split('\n')]
  assert.equal(one.length, 5)
  for (let i = 0; i < 4; i++) assert.notEqual(one[i], two[i])
})

/* ---- the life of a sandbox ---- */

test('getInfo', async () => {
  const info = await sandbox.getInfo()
  assert.equal(info.sandboxId, sandbox.sandboxId)
  assert.match(info.sandboxId, /^i[a-z0-9]{8,}$/)
  assert.equal(info.state, 'running')
  assert.ok(info.startedAt <= new Date() && info.endAt > new Date())
  assert.deepEqual([info.cpuCount, info.memoryMB], [1, 512])
})

test('list, by metadata too', async () => {
  const other = await Sandbox.create({ metadata: { who: 'proof', 'a b': 'c&d' } })
  const all = await Sandbox.list().nextItems()
  assert.deepEqual(new Set(all.map((s) => s.sandboxId)), new Set([sandbox.sandboxId, other.sandboxId]))
  const some = await Sandbox.list({ query: { metadata: { who: 'proof', 'a b': 'c&d' } } }).nextItems()
  assert.deepEqual(some.map((s) => s.sandboxId), [other.sandboxId])
  assert.equal((await Sandbox.list({ query: { metadata: { who: 'else' } } }).nextItems()).length, 0)
  await other.kill()
})

test('connect by id', async () => {
  const same = await Sandbox.connect(sandbox.sandboxId)
  assert.equal((await same.commands.run('echo here')).stdout, 'here\n')
})

test('kill is true, then false; then it does not run', async () => {
  const other = await Sandbox.create()
  assert.equal(await other.isRunning(), true)
  assert.equal(await other.kill(), true)
  assert.equal(await other.kill(), false)
  assert.equal(await other.isRunning(), false)
  assert.equal(await Sandbox.kill(other.sandboxId), false)
  await assert.rejects(other.commands.run('echo no'), SandboxNotFoundError)
})

test('killed in the middle of a command', async () => {
  const other = await Sandbox.create()
  const command = other.commands.run('echo started; sleep 600', { timeoutMs: 60_000 })
  const ended = assert.rejects(command, (error) => error instanceof TimeoutError && /killed|end of life/.test(error.message))
  await until('it runs', async () => (await other.commands.list()).length > 0)
  await other.kill()
  await ended
})

test('ends at the end of its time', async () => {
  const other = await Sandbox.create({ timeoutMs: 3000 })
  assert.equal(await other.isRunning(), true)
  await until('it has ended', async () => !(await other.isRunning()))
})

test('setTimeout moves the end', async () => {
  const before = (await sandbox.getInfo()).endAt
  await sandbox.setTimeout(900_000)
  assert.ok((await sandbox.getInfo()).endAt > before)
})

test('a terminal: its size, its end', async () => {
  let text = ''
  const shell = await sandbox.pty.create({ cols: 93, rows: 31, onData: (d) => { text += new TextDecoder().decode(d) } })
  await sandbox.pty.sendInput(shell.pid, new TextEncoder().encode('stty size; exit 4\n'))
  await assert.rejects(shell.wait(), (error) => error instanceof CommandExitError && error.exitCode === 4)
  assert.match(text, /[\r\n]31 93\r\n/)
})

test('files are refused in words, not as missing', async () => {
  const refused = (error) => /not available in this version/.test(error.message) && !(error instanceof FileNotFoundError)
  await assert.rejects(sandbox.files.write('/tmp/a', 'text'), refused)
  await assert.rejects(sandbox.files.read('/etc/hostname'), refused)
  await assert.rejects(sandbox.files.list('/'), refused)
})

test('an unknown template, a wrong key', async () => {
  await assert.rejects(Sandbox.create('no-such-template'), /404/)
  await assert.rejects(Sandbox.create({ apiKey: `e2b_${'0'.repeat(40)}` }), /401|nauthorized|uthentication/)
})
