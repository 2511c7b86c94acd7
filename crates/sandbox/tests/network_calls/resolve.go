// Go's own resolver, by UDP and by TCP, and its TLS. Prints what it gets.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func get(url string) {
	answer, err := http.Get(url)
	if err != nil {
		fmt.Println("refused")
		return
	}
	body, _ := io.ReadAll(answer.Body)
	fmt.Println(string(body))
}

func main() {
	get(os.Args[2])
	get("https://evil.example.com/")
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	byStream := &net.Resolver{PreferGo: true, Dial: dial}
	for _, host := range []string{os.Args[1], "evil.example.com"} {
		found, err := byStream.LookupHost(context.Background(), host)
		if err != nil {
			fmt.Println(err.(*net.DNSError).IsNotFound)
			continue
		}
		fmt.Println(found[0][:7])
	}
}
