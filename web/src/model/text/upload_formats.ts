/* upload_formats: the formats that the server reads (lib/profile/formats/format_list.h). */
import formats from "perfolio:upload-formats";

export const uploadFormats = formats;

const titles = formats.map(({ title }) => title).join(", ");

/** The formats as the server's messages list them. */
export const formatList = `${titles}, each plain or compressed with gzip or zstd`;

/** The title of a format that the API names; its name if this page is older than the server. */
export const formatTitle = (name: string): string =>
  formats.find((format) => format.name === name)?.title ?? name;
