/* names: ever shorter forms of a function's name, for boxes that are too narrow for the whole. */

/** Removes balanced <…>, (…) and what they hold, except operator names such as operator<. */
function withoutArguments(name: string): string {
  let depth = 0;
  let out = "";
  for (const char of name) {
    if (char === "<" || char === "(") depth++;
    if (depth === 0) out += char;
    if ((char === ">" || char === ")") && depth > 0) depth--;
  }
  return depth === 0 ? out : name;
}

/** From the whole name to its last part; without repetitions. */
export function shorterNames(name: string): string[] {
  const forms = [name];
  const add = (form: string) => {
    if (form && form.length < forms[forms.length - 1].length) forms.push(form);
  };
  const pathless = name.replace(/^[^(<]*\/(?=[^/])/, "");
  add(pathless);
  // Go's "pkg.(*Type).Method" keeps its receiver; C++ and Rust lose arguments first.
  if (name.includes("::")) add(withoutArguments(name).replace(/::$/, "").replace(/::(?=::)/g, ""));
  const last = forms[forms.length - 1];
  if (name.includes("::")) add(last.slice(last.lastIndexOf("::", last.length - 3) + 2));
  else add(pathless.replace(/^[\w$-]+\.(?=[^.])/, "").replace(/^\(\*?([^)]*)\)/, "$1"));
  return forms;
}
