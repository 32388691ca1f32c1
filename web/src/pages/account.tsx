/* account: the pages that a reader of a profile does not need, in a chunk of their own. */
export { InvitePage, LoginPage } from "./login.tsx";
export { OtherPage } from "./other.tsx";
export { SettingsPage } from "./settings.tsx";
export { SharesPage } from "./shares.tsx";
