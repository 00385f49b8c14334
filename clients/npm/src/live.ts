// Where the live bridge is, as run.sh says.

export const bridge = need("BRIDGE");
export const files = need("FILES");
export const shapes = need("SHAPES");

function need(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; run this through run.sh`);
  return value;
}
