// What a node leaves on the machine: its processes, and everything that is counted before and after.

import fs from 'node:fs'
import path from 'node:path'

function read(file) {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return '' // ended meanwhile
  }
}

function list(folder) {
  try {
    return fs.readdirSync(folder)
  } catch {
    return []
  }
}

/** All processes: {pid, parent, name, argv}. Zombies are among them. */
export function processes() {
  return list('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      const stat = read(`/proc/${pid}/stat`)
      const argv = read(`/proc/${pid}/cmdline`).split('\0').slice(0, -1)
      return { pid: Number(pid), parent: Number(stat.slice(stat.lastIndexOf(')') + 4).split(' ')[0]), name: path.basename(argv[0] ?? ''), argv }
    })
    .filter((p) => !Number.isNaN(p.parent))
}

/** The node's jailer. */
export function jailerOf(node) {
  return processes().find((p) => p.name === 'space-jailer' && p.argv.includes(node.data))
}

/** Everything below the node's jailer, itself included. */
export function processesOf(node) {
  const all = processes()
  const jailer = jailerOf(node)
  const found = jailer ? [jailer] : []
  for (let i = 0; i < found.length; i++) found.push(...all.filter((p) => p.parent === found[i].pid))
  return found
}

/** The one process of that name; throws when there are none or several. */
export function theOne(node, name) {
  const found = processesOf(node).filter((p) => p.name === name)
  if (found.length !== 1) throw new Error(`${found.length} processes '${name}', want 1`)
  return found[0]
}

/** What a process holds open, but for its clients' TCP connections, which come and go. */
function descriptors(pid) {
  const tcp = new Set(['tcp', 'tcp6'].flatMap((file) => read(`/proc/${pid}/net/${file}`).split('\n').map((line) => line.trim().split(/\s+/)[9])))
  return list(`/proc/${pid}/fd`).map((fd) => {
    try {
      return fs.readlinkSync(`/proc/${pid}/fd/${fd}`)
    } catch {
      return 'gone'
    }
  }).filter((target) => !tcp.has(target.match(/^socket:\[(\d+)\]$/)?.[1])).map((target) => target.replace(/\d+/g, 'N')).sort()
}

function files(folder) {
  return fs.readdirSync(folder, { recursive: true }).sort()
}

/** Those of this node: its name for itself is the data folder's device and inode. */
function cgroups(node) {
  const { dev, ino } = fs.statSync(node.data)
  const own = `space-${dev.toString(16)}-${ino.toString(16)}`
  const found = []
  const walk = (folder, depth) => {
    for (const name of list(folder)) {
      const below = path.join(folder, name)
      if (depth > 4 || !fs.lstatSync(below, { throwIfNoEntry: false })?.isDirectory()) continue
      if (below.includes(own)) found.push(below)
      walk(below, depth + 1)
    }
  }
  walk('/sys/fs/cgroup', 0)
  return found.sort()
}

/** All that a sandbox could leave behind, as comparable text. */
export function remains(node) {
  const mine = processesOf(node)
  const long = mine.filter((p) => p.name === 'spaced' || p.name === 'space-jailer')
  return {
    processes: mine.map((p) => p.name).sort(),
    descriptors: long.map((p) => [p.name, ...descriptors(p.pid)]),
    mounts: [...new Set([process.pid, ...long.map((p) => p.pid)])].map((pid) => read(`/proc/${pid}/mountinfo`).split('\n').length),
    cgroups: cgroups(node),
    run: files(path.join(node.data, 'run')),
    unix: read('/proc/net/unix').split('\n').filter((line) => line.includes(node.data)).length,
  }
}
