import { promptBackend } from "#backend";
import { mount } from "svelte";
import "../styles/tokens.css";
import "../styles/ui.css";
import "../styles/prompt.css";
import Prompt from "./Prompt.svelte";

mount(Prompt, { target: document.body, props: { backend: promptBackend } });
