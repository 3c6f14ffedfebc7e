// A stock Yjs client: yjs and y-websocket as they come from npm. The WebSocket class adds the two headers that a
// browser cannot send. Prints the keys of `nodes` and `agents` as one JSON line, or the HTTP status of a refusal.
//
//   node viewer.mjs URL TICKET PROOF WANTED_NODES
import { WebSocket } from 'ws'
import * as Y from 'yjs'
import { WebsocketProvider } from 'y-websocket'

const [url, ticket, proof, wanted] = process.argv.slice(2)
const LIMIT_MS = 15000

const done = (result, code) => {
  console.log(JSON.stringify(result))
  process.exit(code)
}

class TicketSocket extends WebSocket {
  constructor (address) {
    const headers = ticket ? { Authorization: `AnsibleTicket ${ticket}`, 'Ansible-Node-Proof': proof } : {}
    super(address, { headers, perMessageDeflate: false })
    this.on('unexpected-response', (_request, response) => done({ status: response.statusCode }, 3))
  }
}

const doc = new Y.Doc()
const provider = new WebsocketProvider(url, 'state', doc, {
  WebSocketPolyfill: TicketSocket, disableBc: true, connect: true, maxBackoffTime: 60000
})
const nodes = doc.getMap('nodes')
const agents = doc.getMap('agents')

const look = () => {
  if (provider.synced && nodes.size >= Number(wanted)) {
    const strings = [...nodes.values(), ...agents.values()].every(value => typeof value === 'string')
    done({ nodes: [...nodes.keys()].sort(), agents: [...agents.keys()].sort(), strings }, 0)
  }
}
provider.on('sync', look)
doc.on('update', look)
setTimeout(() => done({ error: 'timed out', nodes: [...nodes.keys()] }, 4), LIMIT_MS)
