/* A page that was opened from a disk may not start a worker, and the search is one. There its script runs in a hidden
   frame of the same page instead, and messages are handed over as events. Served by a web server, nothing changes. */
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.waiting = []; // messages from before the script was there
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentDocument;
      inside.open(); // some browsers would replace a fresh document once more
      inside.write("<!doctype html><title>search</title>");
      inside.close();
      this.frame.contentWindow.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.createElement("script");
      script.src = new URL(url, location.href).href;
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      };
      inside.head.append(script);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  }
  window.IFrameWorker = IFrameWorker; // the theme's script looks for this name
  window.Worker = IFrameWorker;
}
