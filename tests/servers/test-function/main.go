// SPDX-License-Identifier: Apache-2.0

// A function container that does as it is told, for tests of the cluster itself: says who it is,
// holds memory, waits, streams, or ends. Listens on $PORT, 8080 without; ends on SIGTERM, which the
// first process of a container would otherwise not notice.
//
//	GET  /              the pod's name
//	POST /hold?mib=N    keeps N MiB more, each page written
//	POST /wait?ms=N     answers after N ms
//	POST /stream?n=N&ms=M  N lines, one every M ms, then the line "end"
//	POST /exit?code=N   ends the process
package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const pageBytes = 4096

type memory struct {
	mutex  sync.Mutex
	blocks [][]byte
}

func (m *memory) hold(mib int) int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for i := 0; i < mib; i++ {
		block := make([]byte, 1<<20)
		for page := 0; page < len(block); page += pageBytes {
			block[page] = 1
		}
		m.blocks = append(m.blocks, block)
	}
	return len(m.blocks)
}

// number is the query's parameter, or 0.
func number(request *http.Request, name string) int {
	value, err := strconv.Atoi(request.URL.Query().Get(name))
	if err != nil {
		return 0
	}
	return value
}

func milliseconds(request *http.Request) time.Duration {
	return time.Duration(number(request, "ms")) * time.Millisecond
}

func stream(writer http.ResponseWriter, request *http.Request) {
	controller := http.NewResponseController(writer)
	for i := range number(request, "n") {
		if _, err := fmt.Fprintln(writer, i); err != nil || controller.Flush() != nil {
			return
		}
		select {
		case <-request.Context().Done():
			return
		case <-time.After(milliseconds(request)):
		}
	}
	fmt.Fprintln(writer, "end")
}

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go func() {
		<-ended
		os.Exit(0)
	}()

	var held memory
	http.HandleFunc("GET /", func(writer http.ResponseWriter, _ *http.Request) {
		name, _ := os.Hostname()
		fmt.Fprintln(writer, name)
	})
	http.HandleFunc("POST /hold", func(writer http.ResponseWriter, request *http.Request) {
		fmt.Fprintln(writer, held.hold(number(request, "mib")))
	})
	http.HandleFunc("POST /wait", func(writer http.ResponseWriter, request *http.Request) {
		time.Sleep(milliseconds(request))
		fmt.Fprintln(writer, "waited")
	})
	http.HandleFunc("POST /stream", stream)
	http.HandleFunc("POST /exit", func(_ http.ResponseWriter, request *http.Request) {
		os.Exit(number(request, "code"))
	})

	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	fmt.Fprintln(os.Stderr, http.ListenAndServe(":"+port, nil))
	os.Exit(1)
}
