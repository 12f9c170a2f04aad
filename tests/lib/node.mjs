// A node of one's own for a test file: its data folder shares the seed's template, it listens on a
// free port, and it ends with the file.

import { execFile, execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ROOT = path.resolve(import.meta.dirname, '../..')

export const SPACE = process.env.SPACE_BIN
export const SEED = path.join(process.env.SPACE_TEST_DATA, 'seed')

/** Waits until `look` gives something true and returns it; throws after `limitMs`. */
export async function until(what, look, limitMs = 15_000) {
  const end = Date.now() + limitMs
  for (;;) {
    const seen = await look()
    if (seen) return seen
    if (Date.now() > end) throw new Error(`not so within ${limitMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

export class Node {
  constructor(name) {
    this.data = path.join(process.env.SPACE_TEST_DATA, name)
    this.env = { PATH: process.env.PATH, HOME: process.env.HOME, SPACE_DATA: this.data }
  }

  /** Starts on a data folder that holds nothing but the template. */
  static async start(name, ...options) {
    const node = new Node(name)
    if (fs.existsSync(path.join(node.data, 'state'))) await node.space('down')
    fs.rmSync(node.data, { recursive: true, force: true })
    execFileSync(path.join(ROOT, 'tools/share-template.sh'), [SEED, node.data])
    await node.up(...options)
    return node
  }

  async up(...options) {
    await this.space('up', '--listen', '127.0.0.1:0', ...options)
    await this.refresh()
  }

  /** Reads again where the node is, for us and for the SDK. */
  async refresh() {
    const { E2B_API_KEY, E2B_API_URL } = JSON.parse((await this.space('env', '--json')).stdout)
    this.key = E2B_API_KEY
    this.url = E2B_API_URL
    Object.assign(process.env, { E2B_API_KEY, E2B_API_URL, E2B_SANDBOX_URL: E2B_API_URL })
  }

  /** Ends the node. Its folder stays, with the logs, until the next start. */
  stop() {
    return this.space('down')
  }

  /** Runs the command line; throws with its stderr when the exit status is not 0. */
  space(...args) {
    return run(SPACE, args, { env: this.env, maxBuffer: 1 << 26 })
  }

  /** The same, but any exit status is an answer: {code, signal, stdout, stderr}. */
  async spaceStatus(...args) {
    try {
      return { code: 0, signal: null, ...(await this.space(...args)) }
    } catch (error) {
      if (typeof error.code !== 'number' && !error.signal) throw error
      return { code: error.code, signal: error.signal, stdout: error.stdout, stderr: error.stderr }
    }
  }

  spawn(...args) {
    return spawn(SPACE, args, { env: this.env, stdio: ['ignore', 'pipe', 'pipe'] })
  }

  /** A call of the control plane: {status, headers, json}. */
  async api(method, target, body, headers = {}) {
    const answer = await fetch(this.url + target, {
      method,
      headers: { 'X-API-KEY': this.key, ...(body ? { 'content-type': 'application/json' } : {}), ...headers },
      body: typeof body === 'object' ? JSON.stringify(body) : body,
    })
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, json: text ? JSON.parse(text) : null }
  }
}
