/** A canvas context that draws nothing, so that only the page's own code is measured. */
export const blankContext = {
  font: "",
  fillStyle: "",
  globalAlpha: 1,
  textBaseline: "",
  fillRect: () => undefined,
  fillText: () => undefined,
  createImageData: (width: number, height: number) => ({
    width,
    height,
    data: new Uint8ClampedArray(width * height * 4),
  }),
  putImageData: () => undefined,
  measureText: (text: string) => ({ width: text.length * 6.5 }),
};
