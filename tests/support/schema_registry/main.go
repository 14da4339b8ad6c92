// A schema registry in memory for tests, with Confluent's HTTP interface. It prints its address, and ends when its
// standard input ends. Its answers can be replaced: PUT /faults {"status": 500, "count": 3} lets the next three fail.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// faults is what the next answers are replaced with, and how many requests there were.
type faults struct {
	Status   int    `json:"status"`
	Count    int    `json:"count"`
	Code     int    `json:"code"`
	Message  string `json:"message"`
	Body     any    `json:"body"`
	Requests int    `json:"requests"`
}

func main() {
	address := flag.String("address", "127.0.0.1:0", "where it listens")
	authorization := flag.String("authorization", "", "the Authorization header that it asks for")
	certificate := flag.String("certificate", "", "a file with its key and certificate: it speaks TLS")
	clients := flag.String("clients", "", "a file with the authority of the certificates that clients must show")
	flag.Parse()
	var options []srfake.Option
	if *authorization != "" {
		options = append(options, srfake.WithAuth(*authorization))
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: failing(srfake.NewRegistry(options...).Handler()), ErrorLog: log.New(io.Discard, "", 0)}
	if *certificate == "" {
		fmt.Printf("http://%s\n", listener.Addr())
		go server.Serve(listener)
	} else {
		server.TLSConfig = demanding(*clients)
		fmt.Printf("https://%s\n", listener.Addr())
		go server.ServeTLS(listener, *certificate, *certificate)
	}
	io.Copy(io.Discard, os.Stdin)
}

// demanding asks clients for a certificate of this authority, if there is one.
func demanding(authority string) *tls.Config {
	if authority == "" {
		return &tls.Config{}
	}
	text, err := os.ReadFile(authority)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
}

// failing replaces the next answers of a handler as it is told.
func failing(next http.Handler) http.Handler {
	state := &faults{}
	mutex := sync.Mutex{}
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		if request.URL.Path == "/faults" {
			state.serve(writer, request)
		} else if !state.replace(writer) {
			next.ServeHTTP(writer, request)
		}
	})
}

func (f *faults) serve(writer http.ResponseWriter, request *http.Request) {
	if request.Method == http.MethodPut {
		*f = faults{}
		if err := json.NewDecoder(request.Body).Decode(f); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
	}
	json.NewEncoder(writer).Encode(f)
}

func (f *faults) replace(writer http.ResponseWriter) bool {
	f.Requests++
	if f.Count == 0 {
		return false
	}
	f.Count--
	writer.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	writer.WriteHeader(f.Status)
	if f.Body != nil {
		json.NewEncoder(writer).Encode(f.Body)
	} else {
		json.NewEncoder(writer).Encode(map[string]any{"error_code": f.Code, "message": f.Message})
	}
	return true
}
