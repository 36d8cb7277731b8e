// The rest of what the console can, each feature as it is used; called by browser.mjs.

export async function features() {}
