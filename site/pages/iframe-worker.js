// Browsers start no worker from a file. Where the site is opened without a server, its search runs in
// a hidden frame instead.

if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data: structuredClone(data) }));
      const script = inside.document.createElement("script");
      script.src = url;
      this.started = new Promise((resolve) => (script.onload = () => resolve(inside)));
      inside.document.body.append(script);
    }

    postMessage(data) {
      this.started.then((inside) => inside.onmessage({ data: structuredClone(data) }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
