// The button that records the events of this page and saves them.

import { announce, byId, setText } from "./dom.js";
import { count } from "./format.js";
import { PageRecorder } from "./record.js";

export class RecordButton {
  /** @type {PageRecorder | undefined} */
  #recorder;

  constructor() {
    byId("record").addEventListener("click", () => this.toggle());
  }

  /** @param {string} line */
  push(line) {
    if (!this.#recorder || this.#recorder.push(line)) return;
    this.toggle();
    announce("The recording was saved: it had reached 256 MiB");
  }

  toggle() {
    if (this.#recorder) {
      this.#recorder.save();
      announce(`Saved ${count(this.#recorder.events, "event")}`);
      this.#recorder = undefined;
    } else {
      this.#recorder = new PageRecorder();
      announce("Recording from now on; press again to save");
    }
    byId("record").setAttribute("aria-pressed", String(this.#recorder !== undefined));
    setText(byId("record-text"), this.#recorder ? "Save" : "Record");
  }
}
