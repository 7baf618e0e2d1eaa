/** Changes of the cluster, where the server was started with --allow-actions. Each is confirmed first. */

import * as api from "./api.js";
import { announce, h, show } from "./dom.js";

export function actions(store) {
  return store.cluster?.actions === true;
}

/** A button that asks once more before it runs. */
export function confirmed(label, question, run) {
  const box = h("span", { class: "confirm" });
  const first = h("button", { type: "button", class: "quiet" }, label);
  const reset = () => show(box, first);
  first.addEventListener("click", () => {
    const yes = h("button", { type: "button", class: "danger" }, label);
    const no = h("button", { type: "button", class: "quiet", on: { click: () => {
      reset();
      first.focus();
    } } }, "Cancel");
    yes.addEventListener("click", async () => {
      yes.disabled = true;
      try {
        announce((await run()) ?? `${label}: done`);
        show(box, h("span", { class: "badge good" }, `${label}: done`));
      } catch (error) {
        show(box, h("span", { class: "problem", role: "alert" }, error.message), " ", first);
      }
    });
    show(box, h("span", {}, question, " "), yes, no);
    no.focus();
  });
  reset();
  return box;
}

export function deletePod(namespace, name) {
  return confirmed("Delete pod", `Delete ${namespace}/${name}?`, () => api.remove(api.podPath(namespace, name)).then(() => `Deleted ${namespace}/${name}`));
}

export function cordon(node, isCordoned) {
  const verb = isCordoned ? "Uncordon" : "Cordon";
  return confirmed(verb, `${verb} ${node}?`, () => api.post(`${api.nodePath(node)}/${verb.toLowerCase()}`, {}).then(() => `${verb}: ${node}`));
}

/** Creates what a what-if decided about, with the rights of the user. */
export function createPods(read) {
  return confirmed("Create these pods", "Create them in the cluster?", () => api.post("/pods", { pods: read() }).then(({ created }) => `Created ${created.join(", ")}`));
}
