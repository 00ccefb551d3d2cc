// SPDX-License-Identifier: Apache-2.0

// How GitOps tools see objects, with the libraries that they use themselves: kstatus (Flux, kpt,
// `helm install --wait` from Helm 4 on) and a health script in the Lua of Argo CD. Reads one JSON object a line
// from standard input and answers each with a line
// {"kstatus": STATUS, "kstatusMessage": TEXT, "argo": STATUS, "argoMessage": TEXT}.
//
//	gitops-view HEALTH.lua
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

const maxLineBytes = 1 << 22

type view struct {
	Kstatus        string `json:"kstatus"`
	KstatusMessage string `json:"kstatusMessage"`
	Argo           string `json:"argo"`
	ArgoMessage    string `json:"argoMessage"`
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch typed := value.(type) {
	case bool:
		return lua.LBool(typed)
	case float64:
		return lua.LNumber(typed)
	case int64:
		return lua.LNumber(typed)
	case string:
		return lua.LString(typed)
	case []any:
		table := state.NewTable()
		for _, item := range typed {
			table.Append(toLua(state, item))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for name, item := range typed {
			table.RawSetString(name, toLua(state, item))
		}
		return table
	}
	return lua.LNil
}

// As Argo CD runs it: without io, os and loading of files; the object is the global `obj`.
func health(script string, object map[string]any) (string, string, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString,
	} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	state.SetGlobal("dofile", lua.LNil)
	state.SetGlobal("loadfile", lua.LNil)
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoString(script); err != nil {
		return "", "", err
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", "", fmt.Errorf("the health script returns no table")
	}
	return table.RawGetString("status").String(), table.RawGetString("message").String(), nil
}

func look(script string, line []byte) (view, error) {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(line, object); err != nil {
		return view{}, err
	}
	seen, err := status.Compute(object)
	if err != nil {
		return view{}, err
	}
	argo, message, err := health(script, object.Object)
	return view{string(seen.Status), seen.Message, argo, message}, err
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gitops-view HEALTH.lua <OBJECTS")
		os.Exit(2)
	}
	script, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, maxLineBytes)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		seen, err := look(string(script), lines.Bytes())
		if err == nil {
			err = answers.Encode(seen)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
