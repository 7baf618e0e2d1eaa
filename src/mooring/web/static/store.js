/**
 * The cluster as the page knows it: overview, columns of nodes, and decisions as they happen.
 *
 * Loaded once, then kept by the stream. Events: "cluster", "nodes", "queue", "decision", "configuration", "status".
 * A connection that is lost is made again, with growing pauses; what is shown stays and says how old it is.
 */

import * as api from "./api.js";
import { EventParser } from "./events.js";

const KEPT_DECISIONS = 500;
const LONGEST_PAUSE = 30;
const LASTING = 20_000; // a stream that ended after this was not refused
const SILENCE = 45_000; // the server sends a ping more often than this

/** Columns that stand at the top level of GET /nodes, one entry a node. */
const COLUMNS = ["names", "ready", "unschedulable", "zones", "labels", "taints", "pods", "fragmentation"];

export class ClusterStore extends EventTarget {
  cluster = null;
  nodes = null;
  nodesError = null;
  decisions = [];
  /** loading, live, static, lost */
  status = "loading";
  error = null;
  lastContact = null;
  retryAt = null;
  #abort = null;
  #retry = 0;
  #places = new Map();

  async start() {
    this.#abort?.abort();
    this.#abort = new AbortController();
    clearTimeout(this.#retry);
    let pause = 1;
    const { signal } = this.#abort;
    while (!signal.aborted) {
      try {
        await this.reload();
        pause = 1;
        const began = Date.now();
        await this.#follow(signal);
        if (this.status === "static") return;
        // The server ends streams of users now and then, to review their rights again.
        if (Date.now() - began > LASTING) continue;
        throw new api.ApiError(0, { message: "The server closed the connection." });
      } catch (error) {
        if (signal.aborted || error.status === 401) return;
        this.error = error;
        this.retryAt = Date.now() + pause * 1000;
        this.#become("lost");
        await this.#pause(pause);
        pause = Math.min(LONGEST_PAUSE, pause * 2);
      }
    }
  }

  stop() {
    this.#abort?.abort();
  }

  /** Tries the lost connection at once. */
  retryNow() {
    this.#wake?.();
  }

  #wake = null;

  #pause(seconds) {
    return new Promise((resolve) => {
      this.#wake = () => {
        clearTimeout(this.#retry);
        resolve();
      };
      this.#retry = setTimeout(resolve, seconds * 1000);
    });
  }

  async reload() {
    const [cluster, nodes] = await Promise.all([api.get("/cluster"), this.#readNodes()]);
    this.cluster = cluster;
    this.#takeNodes(nodes);
    this.lastContact = new Date();
    this.#emit("cluster");
    this.#emit("nodes");
    this.#emit("queue");
  }

  /** A user who may not list nodes still sees the queue and their pods. */
  async #readNodes() {
    this.nodesError = null;
    try {
      return await api.get("/nodes");
    } catch (error) {
      if (error.status !== 403) throw error;
      this.nodesError = error;
      return { ...Object.fromEntries(COLUMNS.map((column) => [column, []])), revision: 0, allocatable: {}, requested: {} };
    }
  }

  #takeNodes(nodes) {
    this.nodes = nodes;
    this.#places = new Map(nodes.names.map((name, row) => [name, row]));
  }

  /** The row of a node; -1 where there is none of this name. */
  rowOf(name) {
    return this.#places.get(name) ?? -1;
  }

  async #follow(signal) {
    if (this.cluster.source !== "live") {
      this.#become("static");
      return;
    }
    const silence = new AbortController();
    const end = () => silence.abort();
    signal.addEventListener("abort", end);
    let timer = setTimeout(end, SILENCE);
    try {
      const response = await api.stream(silence.signal);
      this.error = null;
      this.#become("live");
      const parser = new EventParser();
      for await (const text of texts(response.body)) {
        clearTimeout(timer);
        timer = setTimeout(end, SILENCE);
        this.lastContact = new Date();
        for (const event of parser.push(text)) await this.apply(event);
      }
    } catch (error) {
      if (error.name === "AbortError" && !signal.aborted) {
        throw new api.ApiError(0, { message: "The server has been silent for too long." });
      }
      if (error instanceof api.ApiError) throw error;
      throw new api.ApiError(0, { message: "The connection to the server was lost." });
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
    }
  }

  /** Takes one event of the stream. */
  async apply({ type, data }) {
    if (type === "ping") return;
    const found = data ? JSON.parse(data) : {};
    if (type === "resync") await this.reload();
    else if (type === "cluster") {
      Object.assign(this.cluster, found);
      this.#emit("cluster");
    } else if (type === "nodes") await this.#changeNodes(found);
    else if (type === "queue") this.#emit("queue", found);
    else if (type === "decision") this.#addDecision(found);
    else if (type === "decisions") this.#takeDecisions(found);
    else if (type === "configuration") {
      await this.reload();
      this.#emit("configuration");
    }
  }

  async #changeNodes({ revision, rows = {}, added = [], removed = [], refetch = false }) {
    if (refetch || added.length || removed.length) {
      this.#takeNodes(await this.#readNodes());
    } else {
      for (const [index, row] of Object.entries(rows)) setRow(this.nodes, Number(index), row);
      this.nodes.revision = revision ?? this.nodes.revision;
    }
    this.#emit("nodes");
  }

  #addDecision(decision) {
    this.decisions.unshift(decision);
    if (this.decisions.length > KEPT_DECISIONS) this.decisions.length = KEPT_DECISIONS;
    this.#emit("decision", decision);
  }

  /** Those before the stream began: after a connection that was lost, they replace what is known. */
  #takeDecisions(decisions) {
    this.decisions = decisions.reverse().slice(0, KEPT_DECISIONS);
    this.#emit("decision");
  }

  #become(status) {
    this.status = status;
    if (status !== "lost") this.retryAt = null;
    this.#emit("status");
  }

  #emit(type, detail = null) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** Writes one row of a `nodes` event into the columns. */
export function setRow(nodes, index, row) {
  for (const column of COLUMNS) {
    const one = column === "names" ? "name" : column === "zones" ? "zone" : column;
    if (column in row) nodes[column][index] = row[column];
    else if (one in row) nodes[column][index] = row[one];
  }
  for (const amounts of ["allocatable", "requested"]) {
    for (const [resource, number] of Object.entries(row[amounts] ?? {})) {
      nodes[amounts][resource] ??= nodes.names.map(() => 0);
      nodes[amounts][resource][index] = number;
    }
  }
}

async function* texts(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    yield value;
  }
}
