// Browsers start no worker from a file. On pages that are opened as files, the script of a worker runs in a hidden frame,
// so that search works there as it does over HTTP. (With this file Zensical fetches no such script from elsewhere: it
// looks for the name.)
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    onmessage = null;
    onerror = null;
    onmessageerror = null;
    #frame = document.createElement("iframe");
    #loaded;

    constructor(url) {
      super();
      this.#frame.hidden = true;
      this.#frame.title = "search";
      document.body.append(this.#frame);
      const { contentWindow: inner, contentDocument: page } = this.#frame;
      inner.postMessage = (data) => this.#emit(new MessageEvent("message", { data }));
      this.#loaded = new Promise((resolve, reject) => {
        const script = page.createElement("script");
        script.src = new URL(url, location.href);
        script.onload = resolve;
        script.onerror = reject;
        page.head.append(script);
      });
      this.#loaded.catch(() => this.#emit(new Event("error")));
    }

    postMessage(message) {
      const data = structuredClone(message);
      this.#loaded.then(() => this.#frame.contentWindow?.dispatchEvent(new MessageEvent("message", { data })), () => {});
    }

    terminate() {
      this.#frame.remove();
    }

    #emit(event) {
      this[`on${event.type}`]?.(event);
      this.dispatchEvent(event);
    }
  };
}
