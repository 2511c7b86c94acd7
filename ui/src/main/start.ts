import { mainBackend } from "#backend";
import { mount } from "svelte";
import "../styles/tokens.css";
import "../styles/ui.css";
import "../styles/main.css";
import Main from "./Main.svelte";

mount(Main, { target: document.body, props: { backend: mainBackend } });
