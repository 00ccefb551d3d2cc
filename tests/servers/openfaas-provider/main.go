// SPDX-License-Identifier: Apache-2.0

// A provider of OpenFaaS for Kubernetes, for machines that have not the sources of faas-netes: requests
// to functions pass OpenFaaS' own proxy for providers (faas-provider), what is deployed is written here
// as faas-netes writes it, as far as jobs need it: a Deployment and a Service for each function, secrets
// as files. Runs in a pod whose account may write these in the functions' namespace. Environment as
// faas-netes has it: port, function_namespace, read_timeout, write_timeout, basic_auth, secret_mount_path.
//
// With community_release it says that it is this release of faas-netes' community edition, and refuses
// what that refuses: a function beyond the 15th, more than 5 replicas of one, scaling to zero, other
// namespaces, and images that not everybody can pull: here those that do not begin with public_images.
// With service_account it runs outside a pod: the folder that a pod has of its account.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	bootstrap "github.com/openfaas/faas-provider"
	"github.com/openfaas/faas-provider/proxy"
	"github.com/openfaas/faas-provider/types"
)

const (
	functionLabel = "faas_function"
	secretLabel   = "app.kubernetes.io/managed-by"
	secretFolder  = "/var/openfaas/secrets"
	functionPort  = 8080
	// Of the community edition.
	mostFunctions = 15
	mostReplicas  = 5
)

type object = map[string]any

var (
	namespace        = os.Getenv("function_namespace")
	communityRelease = os.Getenv("community_release")
	publicImages     = os.Getenv("public_images")
	account          = accountFolder()
)

func accountFolder() string {
	if folder := os.Getenv("service_account"); folder != "" {
		return folder + "/"
	}
	return "/var/run/secrets/kubernetes.io/serviceaccount/"
}

// --- The Kubernetes API, by its answers' status.

type kubernetes struct {
	client *http.Client
	server string
}

func connect() kubernetes {
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return kubernetes{
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}},
		server: "https://" + os.Getenv("KUBERNETES_SERVICE_HOST") + ":" + os.Getenv("KUBERNETES_SERVICE_PORT"),
	}
}

type refusal struct {
	status int
	text   string
}

func (r refusal) Error() string { return r.text }

// Of a kind in the functions' namespace; an answer of 400 or more is a refusal.
func (k kubernetes) call(method, kind, name string, body object, answer any) error {
	path := map[string]string{"deployments": "/apis/apps/v1"}[kind]
	if path == "" {
		path = "/api/v1"
	}
	path += "/namespaces/" + namespace + "/" + kind
	if name != "" {
		path += "/" + name
	}
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(method, k.server+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	token, err := os.ReadFile(account + "token")
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Content-Type", "application/json")
	response, err := k.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 400 {
		var said struct{ Message string }
		_ = json.Unmarshal(text, &said)
		return refusal{response.StatusCode, said.Message}
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// --- What is written.

func container(request types.FunctionDeployment) object {
	environment := []object{}
	for name, value := range request.EnvVars {
		environment = append(environment, object{"name": name, "value": value})
	}
	amounts := func(of *types.FunctionResources) object {
		all := object{}
		if of != nil && of.Memory != "" {
			all["memory"] = of.Memory
		}
		if of != nil && of.CPU != "" {
			all["cpu"] = of.CPU
		}
		return all
	}
	return object{
		"name": request.Service, "image": request.Image, "imagePullPolicy": "IfNotPresent", "env": environment,
		"ports":     []object{{"name": "http", "containerPort": functionPort}},
		"resources": object{"limits": amounts(request.Limits), "requests": amounts(request.Requests)},
		"readinessProbe": object{"httpGet": object{"path": "/_/health", "port": functionPort},
			"periodSeconds": 1, "timeoutSeconds": 5},
		"securityContext": object{"readOnlyRootFilesystem": request.ReadOnlyRootFilesystem},
		"volumeMounts": []object{{"name": "secrets", "mountPath": secretFolder, "readOnly": true},
			{"name": "temp", "mountPath": "/tmp"}},
	}
}

func deployment(request types.FunctionDeployment) object {
	labels := map[string]string{functionLabel: request.Service}
	if request.Labels != nil {
		for name, value := range *request.Labels {
			labels[name] = value
		}
	}
	selector := object{}
	for _, constraint := range request.Constraints {
		if name, value, found := strings.Cut(constraint, "="); found {
			selector[name] = value
		}
	}
	files := []object{}
	for _, secret := range request.Secrets {
		files = append(files, object{"secret": object{"name": secret}})
	}
	own := object{functionLabel: request.Service}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": object{"name": request.Service, "labels": own, "annotations": request.Annotations},
		"spec": object{"replicas": 1, "selector": object{"matchLabels": own}, "template": object{
			"metadata": object{"labels": labels, "annotations": request.Annotations},
			"spec": object{"nodeSelector": selector, "containers": []object{container(request)},
				"volumes": []object{{"name": "secrets", "projected": object{"sources": files}},
					{"name": "temp", "emptyDir": object{}}}}}}}
}

func service(name string) object {
	return object{
		"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name},
		"spec": object{"selector": object{functionLabel: name},
			"ports": []object{{"name": "http", "port": functionPort, "targetPort": functionPort}}}}
}

// --- The REST API of a provider.

func answer(w http.ResponseWriter, value any, err error, done int) {
	var refused refusal
	switch {
	case errors.As(err, &refused) && refused.status == http.StatusNotFound:
		http.Error(w, refused.text, http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case value != nil:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(done)
		_ = json.NewEncoder(w).Encode(value)
	default:
		w.WriteHeader(done)
	}
}

func read[T any](w http.ResponseWriter, r *http.Request) (T, bool) {
	var request T
	err := json.NewDecoder(r.Body).Decode(&request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return request, err == nil
}

// Why the community edition does not deploy it; "" = it does.
func refusedByEdition(k kubernetes, request types.FunctionDeployment) string {
	if !strings.HasPrefix(request.Image, publicImages) {
		return "the Community Edition license agreement only allows public images"
	}
	if request.Namespace != "" && request.Namespace != namespace {
		return "namespace must be: " + namespace
	}
	if request.Labels != nil {
		labels := *request.Labels
		if labels["com.openfaas.scale.zero"] == "true" {
			return "scaling to zero is not available in the Community Edition"
		}
		for _, bound := range []string{"com.openfaas.scale.min", "com.openfaas.scale.max"} {
			if wanted, err := strconv.Atoi(labels[bound]); err == nil && wanted > mostReplicas {
				return fmt.Sprintf("%s: the Community Edition has at most %d replicas", bound, mostReplicas)
			}
		}
	}
	functions, err := listed(k)
	if err != nil {
		return err.Error()
	}
	if len(functions) >= mostFunctions {
		return fmt.Sprintf("unable to create function, maximum: %d", mostFunctions)
	}
	return ""
}

func deploy(k kubernetes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request, ok := read[types.FunctionDeployment](w, r)
		if !ok {
			return
		}
		if communityRelease != "" {
			if why := refusedByEdition(k, request); why != "" {
				http.Error(w, why, http.StatusBadRequest)
				return
			}
		}
		for _, secret := range request.Secrets {
			if err := k.call(http.MethodGet, "secrets", secret, nil, nil); err != nil {
				http.Error(w, "unable to fetch secrets: "+err.Error(), http.StatusBadRequest)
				return
			}
		}
		err := k.call(http.MethodPost, "deployments", "", deployment(request), nil)
		if err == nil {
			err = k.call(http.MethodPost, "services", "", service(request.Service), nil)
		}
		answer(w, nil, err, http.StatusAccepted)
	}
}

func remove(k kubernetes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request, ok := read[types.DeleteFunctionRequest](w, r)
		if !ok {
			return
		}
		options := object{"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"}
		err := k.call(http.MethodDelete, "deployments", request.FunctionName, options, nil)
		if err == nil {
			err = k.call(http.MethodDelete, "services", request.FunctionName, options, nil)
		}
		answer(w, nil, err, http.StatusAccepted)
	}
}

type found struct {
	Metadata struct {
		Name              string
		Labels            map[string]string
		CreationTimestamp time.Time
	}
	Spec struct {
		Replicas uint64
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct{ Containers []struct{ Image string } }
		}
	}
	Status struct{ AvailableReplicas uint64 }
}

func statusOf(each found) types.FunctionStatus {
	labels := each.Spec.Template.Metadata.Labels
	return types.FunctionStatus{
		Name: each.Metadata.Name, Namespace: namespace, Image: each.Spec.Template.Spec.Containers[0].Image,
		Labels: &labels, Replicas: each.Spec.Replicas, AvailableReplicas: each.Status.AvailableReplicas,
		CreatedAt: each.Metadata.CreationTimestamp}
}

func listed(k kubernetes) ([]types.FunctionStatus, error) {
	var all struct{ Items []found }
	err := k.call(http.MethodGet, "deployments", "?labelSelector="+functionLabel, nil, &all)
	functions := []types.FunctionStatus{}
	for _, each := range all.Items {
		functions = append(functions, statusOf(each))
	}
	return functions, err
}

func list(k kubernetes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		functions, err := listed(k)
		answer(w, functions, err, http.StatusOK)
	}
}

func secrets(k kubernetes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			var all struct{ Items []found }
			err := k.call(http.MethodGet, "secrets", "?labelSelector="+secretLabel+"%3Dopenfaas", nil, &all)
			names := []types.Secret{}
			for _, each := range all.Items {
				names = append(names, types.Secret{Name: each.Metadata.Name, Namespace: namespace})
			}
			answer(w, names, err, http.StatusOK)
			return
		}
		request, ok := read[types.Secret](w, r)
		if !ok {
			return
		}
		written := object{
			"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": object{request.Name: request.Value},
			"metadata": object{"name": request.Name, "labels": object{secretLabel: "openfaas"}}}
		name := request.Name
		switch r.Method {
		case http.MethodPost:
			name = ""
		case http.MethodDelete:
			written = nil
		}
		answer(w, nil, k.call(r.Method, "secrets", name, written, nil), http.StatusAccepted)
	}
}

func status(k kubernetes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var one found
		name := strings.TrimPrefix(r.URL.Path, "/system/function/")
		if err := k.call(http.MethodGet, "deployments", name, nil, &one); err != nil {
			answer(w, nil, err, http.StatusOK)
			return
		}
		answer(w, statusOf(one), nil, http.StatusOK)
	}
}

// By the function's Service.
type resolver struct{}

func (resolver) Resolve(name string) (url.URL, error) {
	name = strings.TrimSuffix(name, "."+namespace)
	return url.URL{Scheme: "http", Host: fmt.Sprintf("%s.%s.svc.cluster.local:%d", name, namespace, functionPort)}, nil
}

func main() {
	config, err := types.ReadConfig{}.Read(types.OsEnv{})
	if err != nil {
		log.Fatal(err)
	}
	port, err := strconv.Atoi(os.Getenv("port"))
	if err != nil {
		log.Fatal("port: ", err)
	}
	config.TCPPort = &port
	k := connect()
	absent := func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotImplemented) }
	bootstrap.Serve(&types.FaaSHandlers{
		FunctionProxy: proxy.NewHandlerFunc(*config, resolver{}), FunctionLister: list(k), FunctionStatus: status(k),
		DeployFunction: deploy(k), UpdateFunction: absent, DeleteFunction: remove(k), ScaleFunction: absent,
		Secrets: secrets(k), Logs: absent, ListNamespaces: absent, Health: func(http.ResponseWriter, *http.Request) {},
		Info: func(w http.ResponseWriter, r *http.Request) {
			name, release := "openfaas-provider", "dev"
			if communityRelease != "" {
				name, release = "faas-netes-ce", communityRelease
			}
			answer(w, types.ProviderInfo{Name: name, Orchestration: "kubernetes",
				Version: &types.VersionInfo{Release: release}}, nil, http.StatusOK)
		},
	}, config)
}
