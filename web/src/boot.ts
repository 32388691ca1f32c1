// Runs before the first paint, so that a stored theme does not flash in the other colours.
const choice = (() => {
  try {
    return localStorage.getItem("perfolio:theme");
  } catch {
    return null; // storage may be forbidden; then the system's setting applies
  }
})();
if (choice === "light" || choice === "dark") document.documentElement.dataset.theme = choice;
