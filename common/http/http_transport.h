// SPDX-License-Identifier: Apache-2.0
// HTTP requests as an interface: clients of Kubernetes, S3 and gateways use it, so that tests can
// replace the network.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/status.h"

namespace lambdadnn {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

// The value of the first field with that name (case does not matter); empty when there is none.
std::string_view FindField(const HttpFields& fields, std::string_view name);

// Cancels requests from another thread. Thread-safe; shared by the waiting and the cancelling
// thread.
class HttpCancellation {
 public:
  // Requests that carry it end soon with kCancelled, those to come at once. Idempotent.
  void Cancel();
  bool cancelled() const;
  // For transports: `end` runs when Cancel is called, at once if it has been; until Unsubscribe.
  int Subscribe(std::function<void()> end);
  // Returns when `end` does not run and will not run.
  void Unsubscribe(int id);

 private:
  mutable std::mutex mutex_;
  bool cancelled_ = false;
  int next_id_ = 0;
  std::map<int, std::function<void()>> subscribers_;
};

struct HttpRequest {
  std::string method;
  std::string url;  // absolute; path and query already percent-encoded, sent as they are
  HttpFields fields;
  // The body's pieces, which stay valid until Send returns; sent without joining them first.
  std::vector<ByteView> body;
  // Whether sending it twice does no harm. If so, a request that dies on a kept-alive connection
  // which the server had closed is sent once more at once; otherwise that is kUnavailable.
  bool repeatable = true;
  // When set, pieces of a body with status 2xx go here as they arrive instead of into
  // HttpResponse::body; false ends the request with kCancelled.
  std::function<bool(ByteView)> on_body;
  // A longer body with status 2xx is refused with kResourceExhausted. Nothing is read beyond it.
  uint64_t max_response_bytes = uint64_t{4} << 30;
  // An error response's body is cut here: the message is in its first lines. The rest is not read.
  uint64_t max_error_bytes = uint64_t{1} << 20;
  // Timeout of the whole request, from Send to the last byte; 0 = only the inactivity timeout.
  double total_seconds = 0;
  // With total_seconds: each so many bytes of a body, sent or received, add a second to it; 0 = no
  // addition. So a large body may take long, but not be slower than this rate. Bytes count by the
  // MiB, so total_seconds must be longer than one MiB takes.
  uint64_t lowest_bytes_per_second = 0;
  std::shared_ptr<HttpCancellation> cancellation;
};

struct HttpResponse {
  int status = 0;
  HttpFields fields;
  Bytes body;
};

// Thread-safe; Send blocks. Any HTTP status is an OK result. kUnavailable: no whole answer came
// (unreachable, timed out, cut), the request may or may not have had its effect; kCancelled: by
// on_body or the cancellation, so too; kFailedPrecondition: TLS was refused; kInvalidArgument: no
// such URL. Redirects are not followed.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  virtual Result<HttpResponse> Send(const HttpRequest& request) = 0;
};

struct HttpTransportOptions {
  // Longest silence within a request: to connect, between two pieces of a body, until the answer.
  double inactivity_seconds = 30;
  // PEM. The only trusted CA certificates, as file or text; both empty = the system's.
  std::string ca_file = "";
  std::string ca_pem = "";
  // PEM. The client's certificate and key (mutual TLS); both or neither.
  std::string client_certificate_pem = "";
  std::string client_key_pem = "";
  // The name that the server's certificate must hold; empty = the URL's host.
  std::string server_name = "";
  // Accepts any certificate. For tests only.
  bool insecure_skip_verify = false;
  // "http://host:port": a proxy that tunnels (CONNECT) for https and forwards for http.
  std::string proxy_url = "";

  Status Validate() const;
};

// Over cpprestsdk, connections kept alive per origin. The first call starts cpprest's threads.
// kInvalidArgument for options or a ca_file that make no sense.
Result<std::unique_ptr<HttpTransport>> NewHttpTransport(const HttpTransportOptions& options);

// For data: a request takes a third to a half of the CPU time (docs/benchmarks.md), all of it on
// the caller's thread, and a connection for itself; connections are kept alive. A name is looked up
// for as long as the system's resolver takes. kInvalidArgument also for a proxy.
Result<std::unique_ptr<HttpTransport>> NewDataTransport(const HttpTransportOptions& options);

}  // namespace lambdadnn
