// One process after the other is killed; each death has its effect and no other.

import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { Sandbox, TimeoutError } from 'e2b'
import { Node, until } from '../lib/node.mjs'
import { processesOf, theOne } from '../lib/host.mjs'

let node
let sandbox
let sleeper // a command that runs in it all the time

const SANDBOX_PROCESSES = ['space-keeper', 'space-daemon', 'qemu-system-x86_64', 'bwrap']

function kill(name) {
  process.kill(theOne(node, name).pid, 'SIGKILL')
}

function noneLeft() {
  return !processesOf(node).some((p) => SANDBOX_PROCESSES.includes(p.name))
}

before(async () => {
  node = await Node.start('deaths')
}, { timeout: 180_000 })

beforeEach(async () => {
  sandbox = await Sandbox.create()
  sleeper = await sandbox.commands.run('echo $$ >/tmp/pid; exec sleep 3000', { background: true, timeoutMs: 0 })
  await until('it runs', async () => (await sandbox.commands.run('cat /tmp/pid 2>/dev/null || true')).stdout !== '')
}, { timeout: 60_000 })

afterEach(async () => {
  for (const s of await Sandbox.list().nextItems()) await Sandbox.kill(s.sandboxId)
  await until('nothing is left of it', noneLeft)
}, { timeout: 60_000 })

after(async () => {
  await node?.stop()
}, { timeout: 60_000 })

async function sandboxEnds(name) {
  const cut = assert.rejects(sleeper.wait(), TimeoutError)
  const at = Date.now()
  kill(name)
  await cut
  await until('the sandbox is known to be gone', async () => !(await sandbox.isRunning()), 2000)
  assert.ok(Date.now() - at < 3000, `took ${Date.now() - at} ms`)
  await until('nothing is left of it', noneLeft)
  assert.equal((await Sandbox.list().nextItems()).length, 0)
  const record = await until('the record names it', async () => {
    const { json } = await node.api('GET', '/node/ended')
    return json.find((one) => one.sandboxID === sandbox.sandboxId)
  }, 1000)
  assert.match(record.cause, /\w/)
}

test('QEMU dies: the sandbox has ended, streams are cut, the record says why', () => sandboxEnds('qemu-system-x86_64'))

test('keeper dies: all of the sandbox dies with it', () => sandboxEnds('space-keeper'))

test('space-daemon dies: another one takes over, what runs in the guest goes on', async () => {
  const before = theOne(node, 'space-daemon').pid
  const cut = assert.rejects(sleeper.wait())
  kill('space-daemon')
  await cut
  await until('another one answers', async () => {
    const found = processesOf(node).filter((p) => p.name === 'space-daemon')
    return found.length === 1 && found[0].pid !== before && (await sandbox.isRunning().catch(() => false))
  })
  const said = await until('a command runs', () => sandbox.commands.run('pgrep -x sleep; cat /tmp/pid').catch(() => null))
  const [running, recorded] = said.stdout.split('\n')
  assert.equal(running, recorded)
  const again = await sandbox.commands.connect(Number(recorded))
  assert.equal(await sandbox.commands.kill(Number(recorded)), true)
  await assert.rejects(again.wait())
})

test('spaced dies: another one finds the sandbox as it was', async () => {
  const qemu = theOne(node, 'qemu-system-x86_64').pid
  const cut = assert.rejects(sleeper.wait())
  const before = theOne(node, 'spaced').pid
  kill('spaced')
  await cut
  await until('another one is there', () => processesOf(node).some((p) => p.name === 'spaced' && p.pid !== before))
  await until('it answers', async () => (await node.spaceStatus('ps')).code === 0)
  await node.refresh()
  const info = await Sandbox.getInfo(sandbox.sandboxId)
  assert.equal(info.state, 'running')
  assert.equal(theOne(node, 'qemu-system-x86_64').pid, qemu)
  const same = await Sandbox.connect(sandbox.sandboxId)
  const [running, recorded] = (await same.commands.run('pgrep -x sleep; cat /tmp/pid')).stdout.split('\n')
  assert.equal(running, recorded)
  assert.equal(await same.kill(), true)
})

for (const [what, key] of [['panics', 'c'], ['restarts', 'b']]) {
  test(`the guest ${what}: the sandbox has ended at once`, async () => {
    const cut = assert.rejects(sleeper.wait(), TimeoutError)
    const at = Date.now()
    await sandbox.commands.run(`echo ${key} >/proc/sysrq-trigger`, { user: 'root' }).catch(() => null)
    await cut
    await until('the sandbox is known to be gone', async () => !(await sandbox.isRunning()), 2000)
    assert.ok(Date.now() - at < 5000, `took ${Date.now() - at} ms`)
    await until('nothing is left of it', noneLeft)
  })
}

test('the guest powers off: the sandbox has ended', async () => {
  const cut = assert.rejects(sleeper.wait(), TimeoutError)
  await sandbox.commands.run('echo o >/proc/sysrq-trigger', { user: 'root' }).catch(() => null)
  await sandbox.commands.run('kill -KILL 1; reboot -f', { user: 'root' }).catch(() => null)
  await sandbox.commands.run('python3 -c "import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)"', { user: 'root' }).catch(() => null)
  await cut
  await until('the sandbox is known to be gone', async () => !(await sandbox.isRunning()))
  await until('nothing is left of it', noneLeft)
})

test('a fork bomb and full memory stay inside: another command answers, then kill works', async () => {
  await sandbox.commands.run(':(){ :|:& };:', { background: true, timeoutMs: 0 })
  await sandbox.commands.run('tail /dev/zero', { background: true, timeoutMs: 0 })
  const other = await Sandbox.create()
  assert.equal((await other.commands.run('echo fine')).stdout, 'fine\n')
  assert.equal(await other.kill(), true)
  assert.equal(await sandbox.isRunning(), true)
  assert.equal(await sandbox.kill(), true)
  await assert.rejects(sleeper.wait())
})
