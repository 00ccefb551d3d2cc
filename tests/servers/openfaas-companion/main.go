// SPDX-License-Identifier: Apache-2.0

// What a gateway of OpenFaaS asks besides its provider, for tests: whether a caller's credentials are
// right (in an installation the basic-auth plugin's work), and how often functions were called
// (Prometheus'; without an answer a gateway of 0.25 breaks off the list of functions).
//
//	GET /validate      200 with the user and password of the files in $secret_mount_path, else 401
//	GET /api/v1/query  no series at all
package main

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

const address = ":8083"

func secret(name string) []byte {
	content, err := os.ReadFile(filepath.Join(os.Getenv("secret_mount_path"), name))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return []byte(strings.TrimSpace(string(content)))
}

func main() {
	user, password := secret("basic-auth-user"), secret("basic-auth-password")
	http.HandleFunc("/validate", func(w http.ResponseWriter, r *http.Request) {
		hisUser, hisPassword, _ := r.BasicAuth()
		right := subtle.ConstantTimeCompare([]byte(hisUser), user) == 1 &&
			subtle.ConstantTimeCompare([]byte(hisPassword), password) == 1
		if !right {
			w.Header().Set("WWW-Authenticate", `Basic realm="Restricted"`)
			http.Error(w, "invalid credentials", http.StatusUnauthorized)
		}
	})
	http.HandleFunc("/api/v1/query", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	})
	http.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {})
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go func() {
		<-ended
		os.Exit(0)
	}()
	if err := http.ListenAndServe(address, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
