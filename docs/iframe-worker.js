// Browsers start no workers for pages opened from disk. The manual's search needs one, so there a hidden frame does its work.
// Material's plugin `offline` knows by this file's name that it need not load another such script from elsewhere.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    #ready;
    #frame = document.createElement("iframe");

    constructor(url) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const { contentDocument: inside, contentWindow: own } = this.#frame;
      own.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.createElement("script");
      this.#ready = new Promise(done => { script.onload = done; });
      script.src = new URL(url, location.href);
      inside.body.append(script);
    }

    async postMessage(data) {
      await this.#ready;
      this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
