"use strict";

document.addEventListener("click", event => {
  const button = event.target.closest("button.ops-copy");
  if (!button) return;
  const text = button.dataset.text, said = button.textContent;
  const done = () => { button.textContent = "copied"; setTimeout(() => { button.textContent = said; }, 1200); };
  if (navigator.clipboard && window.isSecureContext) { navigator.clipboard.writeText(text).then(done); return; }
  const field = Object.assign(document.createElement("textarea"), {value: text});
  document.body.append(field); field.select(); document.execCommand("copy"); field.remove(); done();
});

document.addEventListener("change", event => {
  const all = event.target.closest("input.ops-select-all");
  if (!all) return;
  all.closest("table").querySelectorAll("[name=message]").forEach(box => { box.checked = all.checked; });
});

document.getElementById("searchbar")?.setAttribute("aria-label", "Search");

// Only the figures change: a page that loads itself loses its reader's place.
const seconds = Number(document.querySelector("[data-refresh-seconds]")?.dataset.refreshSeconds);
if (seconds) {
  setInterval(async () => {
    if (document.hidden || getSelection().toString()) return;
    const answer = await fetch(location.href, {credentials: "same-origin"}).catch(() => null);
    if (!answer?.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const figures = page.getElementById("content-main");
    if (figures) document.getElementById("content-main").replaceWith(figures);
  }, seconds * 1000);
}
