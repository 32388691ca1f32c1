/*
 * first_load: what the page of a share or a comparison needs at once. Chunks that come later import it first (build.mjs),
 * so that it stays in one piece.
 */
import "./pages/diff.tsx";
import "./pages/early_drop.ts";
import "./pages/share.tsx";
import "./ui/keep_focus.ts";
import "./ui/shell.tsx";
