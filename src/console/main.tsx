import { render } from "preact";
import { openStart } from "./session/start.ts";
import { Waiting } from "./shell/notes.tsx";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/controls.css";
import "./styles/content.css";
import "./styles/grid.css";

// A page to which the browser goes back was about to leave for an issuer.
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());

const page = document.getElementById("app") as HTMLElement;
render(<Waiting what="Opening…" />, page);
const start = await openStart();

// Each part takes some ten milliseconds to evaluate. In tasks of their own, none holds the page for long.
await import("./session/connection.ts");
const { App } = await import("./app.tsx");
await new Promise((resolve) => setTimeout(resolve));
render(<App start={start} />, page);
