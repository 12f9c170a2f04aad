// Sandboxes that have ended leave nothing: counted before and after.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Sandbox } from 'e2b'
import { Node, until } from '../lib/node.mjs'
import { processesOf, remains } from '../lib/host.mjs'

let node
let clean

/** Waits until nothing is left beyond what was there before the first sandbox. */
async function leavesNothing() {
  let now
  try {
    await until('nothing is left', () => {
      now = remains(node)
      return JSON.stringify(now) === JSON.stringify(clean)
    })
  } catch {
    for (const kind of Object.keys(clean)) assert.deepEqual(now[kind], clean[kind], `left behind: ${kind}: ${JSON.stringify(now[kind])}, before: ${JSON.stringify(clean[kind])}`)
  }
}

before(async () => {
  node = await Node.start('leaks')
  await (await Sandbox.create()).kill() // makes the variant, which stays
  await until('the first one is gone', () => processesOf(node).every((p) => ['space-jailer', 'spaced'].includes(p.name)))
  clean = remains(node)
}, { timeout: 180_000 })

after(async () => {
  await node?.stop()
}, { timeout: 60_000 })

test('ten at once answer, are killed, and leave nothing', async () => {
  const all = await Promise.all(Array.from({ length: 10 }, () => Sandbox.create()))
  const said = await Promise.all(all.map((s, i) => s.commands.run(`echo ${i} $E2B_SANDBOX_ID`)))
  assert.deepEqual(said.map((r) => r.stdout), all.map((s, i) => `${i} ${s.sandboxId}\n`))
  assert.equal(processesOf(node).filter((p) => p.name === 'qemu-system-x86_64').length, 10)
  assert.deepEqual(await Promise.all(all.map((s) => s.kill())), Array(10).fill(true))
  await leavesNothing()
})

test('one killed while it is made', async () => {
  const client = new AbortController()
  const creating = fetch(`${node.url}/v2/sandboxes`, {
    method: 'POST',
    headers: { 'X-API-KEY': node.key, 'content-type': 'application/json' },
    body: JSON.stringify({ templateID: 'base', timeout: 5 }),
    signal: client.signal,
  }).catch(() => null)
  await until('it is being made', () => processesOf(node).some((p) => p.name === 'space-keeper'))
  client.abort()
  await creating
  for (const s of await Sandbox.list().nextItems()) await Sandbox.kill(s.sandboxId)
  await leavesNothing()
})

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  for (const moment of ['creating', 'running']) {
    test(`${signal} to space run while ${moment}`, async () => {
      const child = node.spawn('run', 'sh', '-c', 'echo ready; sleep 600')
      const ended = new Promise((resolve) => child.once('close', (code, by) => resolve([code, by])))
      if (moment === 'running') await new Promise((resolve) => child.stdout.once('data', resolve))
      else await until('it is being made', () => processesOf(node).some((p) => p.name === 'space-keeper'))
      child.kill(signal)
      const number = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 }[signal]
      assert.deepEqual(await ended, [128 + number, null])
      await leavesNothing()
    })
  }
}

test('space run killed without a chance to clean up: its sandbox ends by itself', async () => {
  const child = node.spawn('run', 'sh', '-c', 'echo ready; sleep 600')
  await new Promise((resolve) => child.stdout.once('data', resolve))
  child.kill('SIGKILL')
  await until('its lease ends', async () => (await Sandbox.list().nextItems()).length === 0, 150_000)
  await leavesNothing()
}, { timeout: 200_000 })

test('the node ends and takes all with it', async () => {
  await Sandbox.create()
  await node.space('down')
  assert.deepEqual(processesOf(node), [])
  assert.deepEqual(remains(node).run, [])
  await node.up()
  assert.equal((await Sandbox.list().nextItems()).length, 0)
  await leavesNothing()
}, { timeout: 60_000 })
