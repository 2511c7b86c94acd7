// Sends a request as Go programs do, and says what came back: shop ORDER, as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

type order struct {
	URL, Method string
	Headers     map[string]string
	Body        *string
}

func send(text string) map[string]any {
	var wanted order
	if err := json.Unmarshal([]byte(text), &wanted); err != nil {
		return map[string]any{"error": err.Error()}
	}
	var body io.Reader
	if wanted.Body != nil {
		body = strings.NewReader(*wanted.Body)
	}
	request, err := http.NewRequest(wanted.Method, wanted.URL, body)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	for name, value := range wanted.Headers {
		request.Header.Set(name, value)
	}
	// Redirects are answers.
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	headers := map[string]string{}
	for name := range answer.Header {
		headers[strings.ToLower(name)] = answer.Header.Get(name)
	}
	return map[string]any{"status": answer.StatusCode, "headers": headers, "body": string(said)}
}

func main() {
	said, _ := json.Marshal(send(os.Args[1]))
	fmt.Println(string(said))
}
