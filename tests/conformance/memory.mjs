// Events that can be asked for again.
export class Memory {
  #events = [];
  async storeEvent(stream, message) {
    this.#events.push([stream, message]);
    return `${this.#events.length - 1}`;
  }
  async getStreamIdForEventId(id) {
    return this.#events[Number(id)]?.[0];
  }
  async replayEventsAfter(last, { send }) {
    const stream = this.#events[Number(last)]?.[0];
    for (const [at, [of, message]] of this.#events.entries())
      if (at > Number(last) && of === stream && Object.keys(message).length) await send(`${at}`, message);
    return stream;
  }
}
