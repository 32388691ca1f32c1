/* account: the pages that a reader of a profile does not need, in a chunk of their own. */
import { addStyle } from "../ui/style.ts";
import style from "./pages.css?text";
export { InvitePage, LoginPage } from "./login.tsx";
export { OtherPage } from "./other.tsx";
export { SettingsPage } from "./settings.tsx";
export { SharesPage } from "./shares.tsx";

addStyle(style);
