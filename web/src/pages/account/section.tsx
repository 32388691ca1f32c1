/* section: one section of the settings, with its title and an explanation. */
import type { ComponentChildren } from "preact";

export function Section({
  id,
  title,
  text,
  children,
}: {
  id: string;
  title: string;
  text: string;
  children: ComponentChildren;
}) {
  return (
    <section class="setting" id={id} aria-labelledby={`${id}-title`}>
      <div class="setting-head">
        <h2 id={`${id}-title`}>{title}</h2>
        <p>{text}</p>
      </div>
      <div class="setting-body">{children}</div>
    </section>
  );
}
