// SPDX-License-Identifier: Apache-2.0
// A function host whose functions are entries of a table: one thread serves the host's API on a
// Unix socket and, on one port of 127.0.0.1, the slices of all functions as the production protocol
// says (lines every two seconds, attaching with ?from=, fences, sealed records). For tests that
// need thousands of functions; nothing is trained.
//
//   stub-function-host SOCKET [REQUESTS]
//
// The requests of slices that began lie in the folder REQUESTS, each under its invocation.
// GET /v1/stats on the socket counts: {"functions", "slices", "streams", "begun", "attached",
// "lines"}. Ends on SIGTERM.
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "common/base/descriptor_limit.h"
#include "common/base/endpoint.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "common/protocol/numerics_fingerprint.h"
#include "common/protocol/slice_codec.h"
#include "operator/backends/local/host_protocol.h"
#include "tests/support/fake_platform.h"

namespace lambdadnn {
namespace {

namespace http = boost::beast::http;
namespace net = boost::asio;
using boost::system::error_code;
using Timer = net::steady_timer;
using TimePoint = std::chrono::steady_clock::time_point;

constexpr auto kLineInterval = std::chrono::seconds(2);
// Capacity for all, but a limit: jobs take it in order.
constexpr int64_t kMemoryMib = 16 << 20;
constexpr uint64_t kMaxBodyBytes = 4 * 1024 * 1024;

// One slice: its lines follow from the time that it has run.
struct Slice {
  SliceRequest request;
  TimePoint begun = std::chrono::steady_clock::now();
  std::string record;  // once it has ended
  int64_t lines_at_end = 0;
  // Wakes the streams that show it.
  std::map<const void*, std::function<void()>> streams;

  int64_t Lines() const {
    if (!record.empty()) return lines_at_end;
    return (std::chrono::steady_clock::now() - begun) / kLineInterval + 1;
  }
  TimePoint NextLine() const { return begun + Lines() * kLineInterval; }
  int64_t IterationOf(int64_t line) const {
    return std::min(request.first_iteration + line + 1, request.plan.iterations - 1);
  }
  std::string Line(int64_t line) const {
    ProgressLine progress;
    progress.iteration = IterationOf(line);
    progress.epoch = progress.iteration / std::max<int64_t>(1, request.plan.iterations_per_epoch);
    progress.samples_per_second = 0.5 * request.plan.global_batch_size;
    if (request.role().kind == RoleKind::kServer) {
      progress.loss = 1.0 / static_cast<double>(progress.iteration + 1);
    }
    return EncodeProgress(progress);
  }
  void End(bool graceful) {
    if (!record.empty()) return;
    lines_at_end = Lines();
    SliceRecord end;
    end.invocation = request.invocation;
    end.next_iteration = IterationOf(lines_at_end - 1);
    end.wall_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    if (!graceful) {
      end.outcome = SliceOutcome::kFailed;
      end.error = CancelledError("stopped");
    }
    record = EncodeRecord(end);
    Wake();
  }
  void Wake() {
    const auto all = streams;
    for (const auto& [stream, wake] : all) wake();
  }
};

struct Answer {
  int status = 200;
  std::string body = "{}\n";
  std::shared_ptr<Slice> slice = nullptr;  // streamed in place of a body
  int64_t from = 0;
};

Answer Refuse(int status, StatusCode code, const std::string& message) {
  return {status,
          DumpJson(Json{{"error", {{"code", StatusCodeName(code)}, {"message", message}}}})};
}

// Path and query of a request.
struct Target {
  explicit Target(std::string_view text) {
    const size_t mark = text.find('?');
    path = std::string(text.substr(0, mark));
    if (mark == std::string_view::npos) return;
    for (const std::string& pair : Split(text.substr(mark + 1), '&')) {
      const size_t equals = pair.find('=');
      if (equals == std::string::npos) continue;
      query[pair.substr(0, equals)] = pair.substr(equals + 1);  // uids and numbers
    }
  }
  std::string path;
  std::map<std::string, std::string> query;
};

class Stub {
 public:
  Stub(int port, std::string requests)
      : endpoint_{.host = "127.0.0.1", .port = port}, requests_(std::move(requests)) {
    platform_.remove = [this](FakeInstance& function) { Remove(function); };
  }

  using Request = http::request<http::string_body>;

  // The host's API.
  Answer OfHost(const Request& request) {
    const Target target(std::string_view(request.target().data(), request.target().size()));
    if (target.path == "/v1/host") {
      return {200, EncodeHostInfo(
                       {::getpid(), "stub", "functions are entries of a table", "", kMemoryMib})};
    }
    if (target.path == "/v1/stats") return Stats();
    if (target.path == "/v1/functions") return Functions(request, target);
    const std::string prefix = "/v1/functions/";
    if (!target.path.starts_with(prefix)) return Refuse(404, StatusCode::kNotFound, target.path);
    if (request.method() == http::verb::delete_) {
      FakeInstance* function = platform_.Find(target.path.substr(prefix.size()));
      if (function != nullptr) Remove(*function);
      platform_.ForgetGone();
    }
    return {};
  }

  // A function's: which one, its slice says.
  Answer OfFunction(const Request& request) {
    const Target target(std::string_view(request.target().data(), request.target().size()));
    if (target.path == "/readyz") return {200, EncodeFingerprint({"stub", "stub"})};
    const auto key = request[http::field::authorization];
    const std::string shown(key.data(), key.size());
    if (target.path == "/v1/slices" && request.method() == http::verb::post) {
      return Begin(request.body(), target, shown);
    }
    const std::string prefix = "/v1/slices/";
    if (!target.path.starts_with(prefix) || request.method() != http::verb::delete_) {
      return Refuse(404, StatusCode::kNotFound, target.path);
    }
    const auto found = slices_.find(target.path.substr(prefix.size()));
    if (found == slices_.end()) return Refuse(404, StatusCode::kNotFound, "no such slice");
    if (!Knows(found->second->request.job.uid, shown)) return Stranger();
    found->second->End(target.query.contains("graceful") && target.query.at("graceful") == "true");
    return {202};
  }

  void CountLines(int64_t lines) { lines_ += lines; }
  void CountStreams(int64_t change) { streams_ += change; }

 private:
  static Answer Stranger() { return Refuse(401, StatusCode::kUnauthenticated, "wrong key"); }

  Answer Stats() const {
    return {200, DumpJson(Json{{"functions", platform_.all().size()},
                               {"slices", slices_.size()},
                               {"streams", streams_},
                               {"begun", begun_},
                               {"attached", attached_},
                               {"lines", lines_}})};
  }

  Answer Functions(const Request& request, const Target& target) {
    const auto job = target.query.find("jobUid");
    if (request.method() == http::verb::get) {
      if (job == target.query.end()) return {200, EncodeFunctions({})};
      return {200, EncodeFunctions(platform_.List(job->second))};
    }
    if (request.method() == http::verb::delete_) {
      platform_.Drop(job->second, target.query.at("group"));
      platform_.ForgetGone();
      return {202};
    }
    const Result<HostedFunctionSpec> spec = DecodeFunctionSpec(request.body());
    if (!spec.ok()) return Refuse(400, StatusCode::kInvalidArgument, spec.status().message());
    if (platform_.Find(spec->uid) != nullptr) return {201};
    FunctionInstance& made = platform_.Add(spec->uid, spec->group).instance;
    made.phase = FunctionPhase::kReady;
    made.endpoint = endpoint_;
    made.cold_start_seconds = 0.001;
    return {201};
  }

  // The job's slices of this kind of function end with it, and say nothing more.
  void Remove(FakeInstance& function) {
    const std::string& job = function.group.job_uid;
    const bool server = function.group.program == FunctionProgram::kServer;
    for (auto slice = slices_.lower_bound(job); slice != slices_.end();) {
      if (!slice->first.starts_with(job)) break;
      const std::shared_ptr<Slice> kept = slice->second;
      if ((kept->request.role().kind == RoleKind::kServer) != server) {
        ++slice;
        continue;
      }
      slice = slices_.erase(slice);
      kept->End(false);
    }
    platform_.SetGone(function, FunctionEnd::kByPlatform, "");
    const auto members = platform_.Of(job);
    if (std::ranges::all_of(members, &FakeInstance::IsGone)) epochs_.erase(job);
  }

  // Whether the caller shows the key that the job's functions were given.
  bool Knows(const std::string& job, const std::string& shown) const {
    const auto members = platform_.Of(job);
    if (members.empty()) return false;
    const auto& environment = members.front()->group.environment;
    const auto key = environment.find("LAMBDADNN_JOB_KEY");
    return key != environment.end() && shown == "Bearer " + key->second;
  }

  Answer Begin(const std::string& body, const Target& target, const std::string& shown) {
    Result<SliceRequest> request = DecodeSliceRequest(body);
    if (!request.ok()) return Refuse(400, StatusCode::kInvalidArgument, request.status().message());
    if (!Knows(request->job.uid, shown)) return Stranger();
    int64_t& epoch = epochs_[request->job.uid];
    if (request->leader_epoch < epoch) {
      return Refuse(412, StatusCode::kFailedPrecondition, "a later leader was here");
    }
    epoch = request->leader_epoch;
    Answer answer;
    std::shared_ptr<Slice>& slice = slices_[request->invocation];
    if (slice == nullptr) {
      slice = std::make_shared<Slice>();
      if (!requests_.empty()) {
        (void)WriteFileAtomically(requests_ + "/" + request->invocation, body);
      }
      // The rest of the request is long with a thousand functions, and is not used here.
      request->training = {};
      slice->request = *std::move(request);
      ++begun_;
    } else {
      ++attached_;
    }
    answer.slice = slice;
    if (const auto from = target.query.find("from"); from != target.query.end()) {
      answer.from = ParseInteger(from->second).value_or(0);
    }
    return answer;
  }

  const Endpoint endpoint_;
  const std::string requests_;
  SystemClock clock_;
  FakePlatform<FakeInstance> platform_{[this] { return clock_.Now(); }};
  std::map<std::string, int64_t> epochs_;
  std::map<std::string, std::shared_ptr<Slice>> slices_;
  int64_t streams_ = 0, begun_ = 0, attached_ = 0, lines_ = 0;
};

using Handler = Answer (Stub::*)(const Stub::Request&);

// One request and its answer.
template <typename Protocol>
class Connection : public std::enable_shared_from_this<Connection<Protocol>> {
 public:
  Connection(typename Protocol::socket socket, Stub& stub, Handler handler)
      : socket_(std::move(socket)),
        timer_(socket_.get_executor()),
        stub_(stub),
        handler_(handler) {}
  ~Connection() {
    if (slice_ == nullptr) return;
    slice_->streams.erase(this);
    stub_.CountStreams(-1);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Begin() {
    auto parser = std::make_shared<http::request_parser<http::string_body>>();
    auto buffer = std::make_shared<boost::beast::flat_buffer>();
    parser->body_limit(kMaxBodyBytes);
    http::async_read(socket_, *buffer, *parser,
                     [self = this->shared_from_this(), parser, buffer](error_code error, size_t) {
                       if (!error) self->Take((self->stub_.*self->handler_)(parser->get()));
                     });
  }

 private:
  void Take(Answer answer) {
    if (answer.slice != nullptr) {
      slice_ = std::move(answer.slice);
      next_ = answer.from;
      slice_->streams[this] = [this] { timer_.cancel(); };
      stub_.CountStreams(1);
      out_ = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
      return Pump();
    }
    out_ = "HTTP/1.1 " + std::to_string(answer.status) +
           " Said\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
           std::to_string(answer.body.size()) + "\r\n\r\n" + answer.body;
    net::async_write(socket_, net::buffer(out_),
                     [self = this->shared_from_this()](error_code, size_t) {});
  }

  void Chunk(const std::string& line) {
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", line.size() + 1);
    out_ += size + line + "\n\r\n";
  }

  // What there is to say, then again at the next line's time or the slice's end.
  void Pump() {
    for (const int64_t lines = slice_->Lines(); next_ < lines; ++next_) {
      Chunk(slice_->Line(next_));
      stub_.CountLines(1);
    }
    const bool last = !slice_->record.empty();
    if (last) {
      Chunk(slice_->record);
      out_ += "0\r\n\r\n";
    }
    net::async_write(socket_, net::buffer(out_),
                     [self = this->shared_from_this(), last](error_code error, size_t) {
                       if (error || last) return;
                       self->out_.clear();
                       if (!self->slice_->record.empty()) return self->Pump();
                       self->timer_.expires_at(self->slice_->NextLine());
                       self->timer_.async_wait([self](error_code) { self->Pump(); });
                     });
  }

  typename Protocol::socket socket_;
  Timer timer_;
  Stub& stub_;
  const Handler handler_;
  std::shared_ptr<Slice> slice_;
  int64_t next_ = 0;
  std::string out_;
};

template <typename Protocol>
void Accept(typename Protocol::acceptor& acceptor, Stub& stub, Handler handler) {
  acceptor.async_accept([&acceptor, &stub, handler](error_code error, auto socket) {
    if (error == net::error::operation_aborted) return;
    if (!error) {
      std::make_shared<Connection<Protocol>>(std::move(socket), stub, handler)->Begin();
    }
    Accept<Protocol>(acceptor, stub, handler);
  });
}

int Serve(const std::string& path, const std::string& requests) {
  RaiseDescriptorLimit();
  net::io_context io{1};
  net::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&io](error_code, int) { io.stop(); });
  net::ip::tcp::acceptor functions(io, {net::ip::make_address("127.0.0.1"), 0});
  ::unlink(path.c_str());
  net::local::stream_protocol::acceptor host(io, net::local::stream_protocol::endpoint(path));
  Stub stub(functions.local_endpoint().port(), requests);
  Accept<net::ip::tcp>(functions, stub, &Stub::OfFunction);
  Accept<net::local::stream_protocol>(host, stub, &Stub::OfHost);
  std::printf("serving\n");
  std::fflush(stdout);
  io.run();
  ::unlink(path.c_str());
  return 0;
}

}  // namespace
}  // namespace lambdadnn

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: stub-function-host SOCKET [REQUESTS]\n");
    return 2;
  }
  return lambdadnn::Serve(argv[1], argc == 3 ? argv[2] : "");
}
