/* kept_list: lists that this browser keeps, by name. Storage may be forbidden, or hold something else. */

export function listKept<One>(name: string, isOne: (entry: Partial<One>) => boolean): One[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(`perfolio:${name}`) ?? "[]");
    return Array.isArray(value) ? value.filter((entry) => entry && isOne(entry)) : [];
  } catch {
    return [];
  }
}

/** The first of them; false where the browser keeps nothing. */
export function keepList(name: string, list: readonly unknown[], mostCount: number): boolean {
  try {
    localStorage.setItem(`perfolio:${name}`, JSON.stringify(list.slice(0, mostCount)));
    return true;
  } catch {
    return false;
  }
}
