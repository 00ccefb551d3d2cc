// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/http_watch.h"

#include <deque>
#include <optional>
#include <vector>

#include "operator/kube/kube_status.h"
#include "operator/kube/watch_decoder.h"

namespace lambdadnn {
namespace {

// Events that wait for Next; beyond it the connection's own flow control holds the server back.
constexpr size_t kMaxWaiting = 1000;

class HttpWatch final : public Watch {
 public:
  HttpWatch(Runtime& runtime, std::string what, HttpRequest request,
            std::function<Result<HttpResponse>(const HttpRequest&)> send,
            std::function<void()> on_unauthorized)
      : runtime_(runtime),
        what_(std::move(what)),
        request_(std::move(request)),
        send_(std::move(send)),
        on_unauthorized_(std::move(on_unauthorized)),
        monitor_(runtime.executor.NewMonitor()) {
    request_.cancellation = std::make_shared<HttpCancellation>();
    request_.max_response_bytes = UINT64_MAX;
    request_.on_body = [this](ByteView bytes) { return Take(bytes); };
    task_ = runtime.executor.Spawn("watch", [this] { Run(); });
  }

  ~HttpWatch() override {
    {
      const MonitorLock lock(*monitor_);
      closed_ = true;
      monitor_->NotifyAll();
    }
    request_.cancellation->Cancel();
    task_->Join();
  }

  Result<WatchEvent> Next(Duration timeout) override {
    const Instant deadline = runtime_.clock.Now() + timeout;
    const MonitorLock lock(*monitor_);
    while (waiting_.empty() && !end_) {
      if (!monitor_->WaitUntil(deadline) && waiting_.empty() && !end_) {
        return DeadlineExceededError(what_ + ": nothing new");
      }
    }
    if (waiting_.empty()) return *end_;
    WatchEvent event = std::move(waiting_.front());
    waiting_.pop_front();
    monitor_->NotifyAll();
    return event;
  }

 private:
  void Run() {
    const Result<HttpResponse> response = send_(request_);
    Status end = UnavailableError(what_ + ": the watch ended");
    if (!response.ok()) {
      end = response.status().WithContext(what_);
    } else if (response->status / 100 != 2) {
      if (response->status == 401) on_unauthorized_();
      end = StatusOfAnswer(what_, *response);
    }
    const MonitorLock lock(*monitor_);
    if (!broken_.ok()) end = broken_;
    // What is wrong with a stream is cured by a new one.
    if (end.code() == StatusCode::kCancelled || end.code() == StatusCode::kDataLoss ||
        end.code() == StatusCode::kResourceExhausted) {
      end = UnavailableError(end.message());
    }
    end_ = end;
    monitor_->NotifyAll();
  }

  bool Take(ByteView bytes) {
    std::vector<WatchEvent> events;
    const Status status = decoder_.Append(bytes, &events);
    const MonitorLock lock(*monitor_);
    for (WatchEvent& event : events) {
      while (waiting_.size() >= kMaxWaiting && !closed_) monitor_->Wait();
      if (closed_) return false;
      waiting_.push_back(std::move(event));
      monitor_->NotifyAll();
    }
    if (!status.ok()) broken_ = status.WithContext(what_);
    return status.ok() && !closed_;
  }

  Runtime& runtime_;
  const std::string what_;
  HttpRequest request_;
  const std::function<Result<HttpResponse>(const HttpRequest&)> send_;
  const std::function<void()> on_unauthorized_;
  const std::unique_ptr<Monitor> monitor_;
  WatchDecoder decoder_;  // of the task
  // With the monitor held:
  std::deque<WatchEvent> waiting_;
  Status broken_;              // the stream made no sense
  std::optional<Status> end_;  // why no more events come
  bool closed_ = false;
  std::unique_ptr<Task> task_;
};

}  // namespace

std::unique_ptr<Watch> NewHttpWatch(Runtime& runtime, std::string what, HttpRequest request,
                                    std::function<Result<HttpResponse>(const HttpRequest&)> send,
                                    std::function<void()> on_unauthorized) {
  return std::make_unique<HttpWatch>(runtime, std::move(what), std::move(request), std::move(send),
                                     std::move(on_unauthorized));
}

}  // namespace lambdadnn
