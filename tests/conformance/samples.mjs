// What both fixtures of the conformance suite offer: what its scenarios ask for by name.
export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
export const text = (body) => ({ type: "text", text: body });
export const nothing = { type: "object", properties: {} };

// Name: description, schema of the arguments, what it gives.
export const plain = {
  test_simple_text: ["Says a sentence", nothing, async () => [text("This is a simple text response for testing.")]],
  test_image_content: ["Shows a picture", nothing, async () => [{ type: "image", data: PNG, mimeType: "image/png" }]],
  test_audio_content: ["Plays a sound", nothing, async () => [{ type: "audio", data: WAV, mimeType: "audio/wav" }]],
  test_embedded_resource: ["Hands out a resource", nothing, async () => [
    { type: "resource", resource: { uri: "test://embedded-resource", mimeType: "text/plain", text: "This is an embedded resource content." } },
  ]],
  test_multiple_content_types: ["Hands out several things", nothing, async () => [
    text("Multiple content types test:"),
    { type: "image", data: PNG, mimeType: "image/png" },
    { type: "resource", resource: { uri: "test://mixed-content-resource", mimeType: "application/json", text: '{"test":"data","value":123}' } },
  ]],
  test_error_handling: ["Fails", nothing, async () => {
    throw new Error("This tool intentionally returns an error for testing");
  }],
};

const user = (content) => ({ role: "user", content });
export const prompts = {
  test_simple_prompt: [[], () => [user(text("This is a simple prompt for testing."))]],
  test_prompt_with_arguments: [["arg1", "arg2"], ({ arg1, arg2 }) => [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))]],
  test_prompt_with_embedded_resource: [["resourceUri"], ({ resourceUri }) => [
    user({ type: "resource", resource: { uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing." } }),
    user(text("Please process the embedded resource above.")),
  ]],
  test_prompt_with_image: [[], () => [
    user({ type: "image", data: PNG, mimeType: "image/png" }), user(text("Please analyze the image above.")),
  ]],
};

export const resources = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
  "test://watched-resource": { mimeType: "text/plain", text: "Watched." },
};
export const template = { uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" };

// What is at an address, if anything.
export function resource(uri) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  const templated = id && { mimeType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) };
  return templated || resources[uri];
}

export const listed = {
  prompts: Object.entries(prompts).map(([name, [names]]) => ({
    name, description: name, arguments: names.map((name) => ({ name, description: name, required: true })),
  })),
  resources: Object.entries(resources).map(([uri, { mimeType }]) => ({ uri, name: uri, description: uri, mimeType })),
};
export const completion = { values: ["paris", "park", "party"], total: 150, hasMore: false };
