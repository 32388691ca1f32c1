/* account: the entry of the chunk with pages that readers of a profile do not need. */
import { addStyle } from "../../ui/later.tsx";
import style from "../pages.css?text";
export { InvitePage, LoginPage } from "./login.tsx";
export { OtherPage } from "../other.tsx";
export { SettingsPage } from "./settings.tsx";
export { SharesPage } from "./shares.tsx";

addStyle(style);
