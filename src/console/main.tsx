import { render } from "preact";
import { App } from "./app.tsx";
import { openStart } from "./session/start.ts";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/controls.css";
import "./styles/content.css";

// A page to which the browser goes back was about to leave for an issuer.
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());

const start = await openStart();
render(<App start={start} />, document.getElementById("app") as HTMLElement);
