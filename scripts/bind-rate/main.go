// Posts bindings and decides nothing: what is left of a scheduler when its decisions cost nothing. `mooring bench e2e`
// compares schedulers with it.
//
// The job is a JSON document on standard input. Pods are bound to the nodes in turn, so many requests in flight, each on
// an HTTP/1.1 connection of its own that is written to and read from by one goroutine: half the CPU time of net/http's
// client, and less than HTTP/2 takes. A line of JSON at the end reports what was bound.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
)

type job struct {
	Server      string   `json:"server"`
	CA          []byte   `json:"ca"`
	Insecure    bool     `json:"insecure"`
	ServerName  string   `json:"serverName"`
	Token       string   `json:"token"`
	Certificate []byte   `json:"certificate"`
	Key         []byte   `json:"key"`
	Namespace   string   `json:"namespace"`
	Pods        []string `json:"pods"`
	Nodes       []string `json:"nodes"`
	InFlight    int      `json:"inFlight"`
}

type report struct {
	Bound  int64  `json:"bound"`
	Failed int64  `json:"failed"`
	Error  string `json:"error,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "bind-rate: %v\n", err)
		os.Exit(1)
	}
}

func run(input io.Reader, output io.Writer) error {
	var wanted job
	if err := json.NewDecoder(input).Decode(&wanted); err != nil {
		return fmt.Errorf("the job on standard input cannot be read: %w", err)
	}
	if len(wanted.Nodes) == 0 || wanted.InFlight < 1 {
		return errors.New("the job needs nodes, and at least one request in flight")
	}
	target, err := newServer(wanted)
	if err != nil {
		return err
	}
	result := bindAll(wanted, target)
	if err := json.NewEncoder(output).Encode(result); err != nil {
		return err
	}
	if result.Failed > 0 {
		return fmt.Errorf("%d of %d bindings failed, the first with: %s", result.Failed, len(wanted.Pods), result.Error)
	}
	return nil
}

// bindAll gives each worker the next pod until none is left.
func bindAll(wanted job, target *server) report {
	var next, bound, failed atomic.Int64
	var firstError atomic.Pointer[string]
	var workers sync.WaitGroup
	for range wanted.InFlight {
		workers.Add(1)
		go func() {
			defer workers.Done()
			connection := connection{server: target}
			defer connection.close()
			for {
				at := int(next.Add(1) - 1)
				if at >= len(wanted.Pods) {
					return
				}
				err := connection.bind(wanted.Namespace, wanted.Pods[at], wanted.Nodes[at%len(wanted.Nodes)])
				if err == nil {
					bound.Add(1)
					continue
				}
				text := err.Error()
				firstError.CompareAndSwap(nil, &text)
				failed.Add(1)
			}
		}()
	}
	workers.Wait()
	result := report{Bound: bound.Load(), Failed: failed.Load()}
	if text := firstError.Load(); text != nil {
		result.Error = *text
	}
	return result
}

// A server is what all connections share.
type server struct {
	address string
	path    string
	headers string
	tls     *tls.Config // nil: not encrypted
}

func newServer(wanted job) (*server, error) {
	place, err := url.Parse(wanted.Server)
	if err != nil {
		return nil, fmt.Errorf("the server of the job is no URL: %w", err)
	}
	found := &server{address: place.Host, path: place.Path, headers: "Host: " + place.Host + "\r\n"}
	if wanted.Token != "" {
		found.headers += "Authorization: Bearer " + wanted.Token + "\r\n"
	}
	port := "80"
	if place.Scheme == "https" {
		port = "443"
		if found.tls, err = tlsConfig(wanted, place.Hostname()); err != nil {
			return nil, err
		}
	}
	if place.Port() == "" {
		found.address = net.JoinHostPort(place.Hostname(), port)
	}
	return found, nil
}

func tlsConfig(wanted job, host string) (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: wanted.Insecure, ServerName: wanted.ServerName}
	if config.ServerName == "" {
		config.ServerName = host
	}
	if len(wanted.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(wanted.CA) {
			return nil, errors.New("the certificate authority of the job is not PEM")
		}
	}
	if len(wanted.Certificate) > 0 {
		pair, err := tls.X509KeyPair(wanted.Certificate, wanted.Key)
		if err != nil {
			return nil, fmt.Errorf("the client certificate of the job cannot be used: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// A connection belongs to one worker. It connects when it is needed, and again after a failure.
type connection struct {
	server  *server
	stream  net.Conn
	reader  *bufio.Reader
	request []byte
}

func (c *connection) bind(namespace, pod, node string) error {
	if err := c.open(); err != nil {
		return err
	}
	body := fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Binding","metadata":{"name":%q,"namespace":%q},"target":{"kind":"Node","name":%q}}`,
		pod, namespace, node)
	c.request = fmt.Appendf(c.request[:0],
		"POST %s/api/v1/namespaces/%s/pods/%s/binding HTTP/1.1\r\n%sContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n%s",
		c.server.path, namespace, pod, c.server.headers, len(body), body)
	err := c.exchange()
	if err != nil {
		c.close()
	}
	return err
}

func (c *connection) exchange() error {
	if _, err := c.stream.Write(c.request); err != nil {
		return err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s: %s", response.Status, text)
	}
	if response.Close {
		c.close()
	}
	return nil
}

func (c *connection) open() error {
	if c.stream != nil {
		return nil
	}
	stream, err := net.Dial("tcp", c.server.address)
	if err != nil {
		return err
	}
	if c.server.tls != nil {
		stream = tls.Client(stream, c.server.tls)
	}
	c.stream, c.reader = stream, bufio.NewReader(stream)
	return nil
}

func (c *connection) close() {
	if c.stream != nil {
		c.stream.Close()
		c.stream = nil
	}
}
