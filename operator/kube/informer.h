// SPDX-License-Identifier: Apache-2.0
// Keeps a cache of the objects of one kind: a paged list, then one watch from its version on (one
// per namespace where namespaces are given), however many objects and readers there are.
//
// After the end of a watch, the next one continues from the last version seen, bookmarks included.
// When the server no longer has that version (410, in the stream or as an answer) everything is
// listed again, and objects missing from the list are reported as deleted. Failures are retried
// with exponential back-off and jitter.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
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
  // Reduces each object to what is wanted of it before it is cached; metadata.name, namespace, uid
  // and resourceVersion must stay. Null = objects are cached as they are.
  std::function<void(Json*)> transform = nullptr;
  ObjectCache::Storage storage = ObjectCache::Storage::kTree;
  int page_size = 100;  // while it is read, a page of large objects takes some megabytes
  // After the first failure in a row, doubled by each further one up to the limit; each wait is up
  // to twice as long by chance.
  double retry_seconds = 0.2;
  double max_retry_seconds = 30;
  // A watch that lasted this long, or had any event, counts as no failure.
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
  // Why the last list or watch failed; OK while all goes well.
  Status Problem() const;

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
  void Note(Place* place, const Status& problem);
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
  Status problem_;
  Counts counts_;
  std::vector<std::unique_ptr<Task>> tasks_;
};

}  // namespace lambdadnn
