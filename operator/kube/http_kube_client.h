// SPDX-License-Identifier: Apache-2.0
// KubeClient over HTTP: a real API server. Refuses unknown fields (fieldValidation=Strict), waits
// where the server asks for it (429, 503 with Retry-After), and refreshes credentials; a watch is
// one streamed request on a task of its own.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/base/runtime.h"
#include "common/http/http_transport.h"
#include "operator/kube/kube_client.h"
#include "operator/kube/kube_connection.h"
#include "operator/kube/kube_credentials.h"

namespace lambdadnn {

struct HttpKubeClientOptions {
  std::string user_agent = "lambdadnn";
  // Who wrote a field, for server-side apply of others.
  std::string field_manager = "lambdadnn-operator";
  double call_inactivity_seconds = 30;
  double call_total_seconds = 60;
  // Bookmarks come about every minute: longer silence is a connection that is dead on the way.
  double watch_inactivity_seconds = 100;
  // The server ends a watch after a random time between this and twice this.
  int watch_seconds = 300;
  // Requests in all when the server asks to come back later.
  int max_attempts = 4;
  // A server's Retry-After is obeyed in place up to this.
  double max_retry_after_seconds = 10;
  // Requests a second on average and at once; 0 = no limit of ours (the server has its own).
  double queries_per_second = 0;
  int burst = 100;
  // Told about every answer: method, HTTP status (0 = none came), seconds. Must not block.
  std::function<void(const std::string& method, int code, double seconds)> on_request = nullptr;
  // Told the server's time of every answer that has one, and when it was asked for and came.
  std::function<void(WallTime date, Instant sent, Instant received)> on_date = nullptr;
};

using HttpTransportFactory =
    std::function<Result<std::unique_ptr<HttpTransport>>(const HttpTransportOptions&)>;

class HttpKubeClient final : public KubeClient {
 public:
  // `runtime` outlives it; watches may not outlive the client.
  HttpKubeClient(const KubeConnection& connection, Runtime& runtime,
                 const HttpKubeClientOptions& options = {},
                 HttpTransportFactory new_transport = NewHttpTransport);
  ~HttpKubeClient() override;

  Result<Json> Get(const ResourceType& type, const ObjectName& name) override;
  Result<KubeList> List(const ResourceType& type, const std::string& namespace_name,
                        const std::string& label_selector, int limit,
                        const std::string& continue_token) override;
  Result<Json> Create(const ResourceType& type, const Json& object) override;
  // What Create would answer: the server checks everything and stores nothing.
  Result<Json> CreateDryRun(const ResourceType& type, const Json& object);
  Result<Json> Update(const ResourceType& type, const Json& object,
                      Subresource subresource) override;
  Result<Json> Patch(const ResourceType& type, const ObjectName& name, const Json& merge_patch,
                     Subresource subresource) override;
  Status Delete(const ResourceType& type, const ObjectName& name,
                const std::string& uid_precondition) override;
  Status DeleteWithin(const ResourceType& type, const ObjectName& name,
                      const std::string& uid_precondition, int grace_seconds) override;
  Result<std::string> PodLog(const ObjectName& pod, const std::string& container, ContainerRun run,
                             int last_lines) override;
  // An error of the server's (403, 410) comes from the watch's first Next.
  Result<std::unique_ptr<Watch>> StartWatch(const ResourceType& type,
                                            const std::string& namespace_name,
                                            const std::string& label_selector,
                                            const std::string& resource_version) override;

  const std::string& server() const { return connection_.server; }

 private:
  // The transports of one client certificate; requests under way keep theirs.
  struct Session {
    KubeCredential credential;
    std::unique_ptr<HttpTransport> calls;
    std::unique_ptr<HttpTransport> watches;
  };
  struct Call {
    std::string what = "";  // for messages
    std::string method = "";
    std::string path;  // with query, from the server's root
    const Json* body = nullptr;
    std::string content_type = "application/json";
    std::string name = "";  // that the object in the answer must have; empty = any, or none
  };

  // The session of the current credentials, and these credentials.
  Result<std::shared_ptr<Session>> SessionNow(KubeCredential* credential);
  HttpRequest MakeRequest(const std::string& method, const std::string& path,
                          const KubeCredential& credential) const;
  Status DeleteWith(const ResourceType& type, const ObjectName& name,
                    const std::string& uid_precondition, Json options);
  // Answers other than 2xx are errors.
  Result<HttpResponse> Ask(const Call& call);
  Result<Json> Do(const Call& call);
  Result<HttpResponse> SendOnce(const Call& call, const std::string& body,
                                KubeCredential* credential);
  void WaitForTurn();

  const KubeConnection connection_;
  Runtime& runtime_;
  const HttpKubeClientOptions options_;
  const HttpTransportFactory new_transport_;
  KubeCredentials credentials_;
  std::mutex mutex_;
  std::shared_ptr<Session> session_;
  std::optional<Instant> next_turn_;  // of the client limit
};

}  // namespace lambdadnn
