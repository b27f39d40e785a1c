// The part of /docs that needs a browser: it filters the operations, and sends the calls of the forms.

/** Media type of rows as JSON, an object in each line. */
const ROWS = "application/x-ndjson";

const credentials = document.querySelector("#credentials");

document.querySelector("#filter").addEventListener("input", ({ target }) => {
  const words = target.value.toLowerCase().split(/\s+/);
  for (const operation of document.querySelectorAll(".operation")) {
    const text = operation.querySelector("summary").textContent.toLowerCase();
    operation.hidden = !words.every((word) => text.includes(word));
  }
});

for (const form of document.querySelectorAll("form.try")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void send(form);
  });
}

openTarget();
window.addEventListener("hashchange", openTarget);

/** Opens the part that the address names. */
function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.tagName === "DETAILS") target.open = true;
}

async function send(form) {
  const output = form.querySelector("output");
  output.textContent = "…";
  try {
    const { url, init } = requestOf(form);
    const started = performance.now();
    const answer = await fetch(url, init);
    const body = await bodyOf(answer);
    const ms = Math.round(performance.now() - started);
    output.textContent = `${init.method} ${url}\n${answer.status} ${answer.statusText} (${ms} ms)\n\n${body}`;
  } catch (error) {
    output.textContent = String(error);
  }
}

/** Returns the request that the fields of a form describe; empty fields are left out. */
function requestOf(form) {
  const { method, path } = form.dataset;
  const query = new URLSearchParams();
  let target = path;
  for (const field of form.querySelectorAll("[data-in]")) {
    const { name, value } = field;
    if (field.dataset.in === "path") target = target.replace(`{${name}}`, encodeURIComponent(value));
    else if (value !== "")
      for (const each of field.dataset.many ? value.split(",") : [value]) query.append(name, each);
  }
  const headers = new Headers();
  for (const { name, value, dataset } of credentials?.querySelectorAll("input") ?? [])
    if (value !== "") headers.set(name, (dataset.prefix ?? "") + value);
  const body = form.querySelector("[data-body]");
  const content = body?.type === "file" ? body.files[0] : body?.value || undefined;
  if (content !== undefined) headers.set("content-type", body.dataset.body);
  if (form.dataset.accept !== undefined) headers.set("accept", form.dataset.accept);
  const url = query.size === 0 ? target : `${target}?${query}`;
  return { url, init: { method, headers, body: content } };
}

async function bodyOf(answer) {
  const type = answer.headers.get("content-type") ?? "";
  // A parser would round long numbers.
  if (type === ROWS) return answer.text();
  if (!type.includes("json")) return `${(await answer.blob()).size} bytes ${type}`;
  const text = await answer.text();
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
