// SPDX-License-Identifier: Apache-2.0
// A watch over HTTP: the streamed answer to one request, read by a task of its own. Private to this
// folder.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/runtime.h"
#include "common/http/http_transport.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// `send` is called once, on the watch's task. `on_unauthorized` when the server answered 401 (the
// next watch then uses new credentials). The watch's destructor ends the request and waits for it;
// `runtime` outlives it.
std::unique_ptr<Watch> NewHttpWatch(Runtime& runtime, std::string what, HttpRequest request,
                                    std::function<Result<HttpResponse>(const HttpRequest&)> send,
                                    std::function<void()> on_unauthorized);

}  // namespace lambdadnn
