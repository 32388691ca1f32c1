/* name_among: what a chosen file is called, told from others of the same name ("before/cpu.pb.gz", "after/cpu.pb.gz"). */
import { formatBytes } from "../model/units.ts";

/** Its size and time are told when another has its name; its place, too, when those are the same. */
export function nameAmong(files: readonly File[], index: number): string {
  const { name, size, lastModified } = files[index];
  const others = files.filter((other, i) => i !== index && other.name === name);
  if (others.length === 0) return name;
  const told = ({ size, lastModified }: Pick<File, "size" | "lastModified">) =>
    `${formatBytes(size)}, ${new Date(lastModified).toLocaleString()}`;
  const own = told({ size, lastModified });
  return `${name} (${own}${others.some((other) => told(other) === own) ? `, file ${index + 1}` : ""})`;
}
