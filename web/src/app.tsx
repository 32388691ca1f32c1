import { render } from "preact";

render(<main class="page"><h1>Perfolio</h1></main>, document.getElementById("app")!);
