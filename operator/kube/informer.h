// SPDX-License-Identifier: Apache-2.0
// One kind of object, kept in a cache: a list in pages, then one watch from there on (one per
// namespace where namespaces are named), however many objects there are and whoever looks.
//
// A watch that ends goes on from the last version seen, bookmarks included. When the server has
// forgotten that version (410, in the stream or as an answer) everything is listed anew, and what
// is missing from the list is told as gone. Whatever fails is tried again, ever later (with a
// random part, so that many clients do not come back at once).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/kube/kube_client.h"
#include "operator/kube/object_cache.h"

namespace lambdadnn {

struct InformerOptions {
  ResourceType type = {};
  std::vector<std::string> namespaces = {};  // empty = all, by one watch
  std::string label_selector = "";
  int page_size = 500;
  // After the first failure in a row, doubled by each further one up to the limit; each wait is up
  // to twice as long by chance.
  double retry_seconds = 0.2;
  double max_retry_seconds = 30;
  // A watch that lived this long, or brought anything, was no failure.
  double healthy_seconds = 10;
};

class Informer {
 public:
  // Told the name of every object that is new, changed or gone. Must not block.
  using Handler = std::function<void(const ObjectName&)>;

  // Both outlive this.
  Informer(KubeClient& client, Runtime& runtime, InformerOptions options);
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  void Start();
  // Ends the watches; the cache stays as it is.
  void Stop();
  // In the place of the one before, which is not called any more once this returns. Null = none.
  // The new one is told of all objects that are there.
  void SetHandler(Handler handler);
  // Everything has been listed at least once.
  bool synced() const;
  // Why the last list or watch failed; nullopt while all goes well.
  std::optional<std::string> Problem() const;

  ObjectCache& cache() { return cache_; }
  const ObjectCache& cache() const { return cache_; }

  struct Counts {
    int64_t lists = 0;    // whole ones
    int64_t watches = 0;  // begun
    int64_t expired = 0;  // 410s
  };
  Counts counts() const;

 private:
  enum class Outcome { kGoOn, kListAgain, kFailed };
  struct Place {  // of one namespace, of its task
    std::string namespace_name;
    std::string version;
    int failures = 0;
    bool fresh = false;  // listed, and nothing heard since
  };

  void Run(const std::string& namespace_name);
  Status ListAll(Place* place);
  // Watches until the stream ends.
  Outcome Follow(Place* place);
  Outcome JudgeEnd(const Status& status, bool healthy, Place* place);
  Outcome JudgeError(const Json& status, Place* place);
  void Take(WatchEvent event);
  void Tell(const ObjectName& name);
  void Note(Place* place, const std::string& problem);
  void NoteHealthy(Place* place);
  // False: it is time to stop.
  bool BackOff(Place* place);
  bool stopping() const;

  KubeClient& client_;
  Runtime& runtime_;
  const InformerOptions options_;
  ObjectCache cache_;
  const std::unique_ptr<Monitor> monitor_;
  // With the monitor held:
  bool stopping_ = false;
  Handler handler_;
  size_t listed_ = 0;  // namespaces
  std::string problem_;
  Counts counts_;
  std::vector<std::unique_ptr<Task>> tasks_;
};

}  // namespace lambdadnn
