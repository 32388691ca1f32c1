// Runs before the first paint, so that a chosen theme never flashes in the other colours.
const choice = (() => {
  try {
    return localStorage.getItem("perfolio:theme");
  } catch {
    return null; // storage may be forbidden; the system's choice then stands
  }
})();
if (choice === "light" || choice === "dark") document.documentElement.dataset.theme = choice;
