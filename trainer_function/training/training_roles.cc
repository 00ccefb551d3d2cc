// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/training_roles.h"

#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "trainer_function/parameter_server/server_role.h"
#include "trainer_function/transport/loopback_transport.h"

namespace lambdadnn {
namespace {

Status RunRole(const RoleContext& context, const Role& role, Transport& transport,
               const WorkerTask& worker, SliceRecord* record) {
  SliceSession session(context, role, transport, std::move(*record));
  const Status status = role.kind == RoleKind::kServer ? RunServerRole(session) : worker(session);
  *record = std::move(session.record());
  return status;
}

// A worker with the servers in its function.
class HostedRoles {
 public:
  HostedRoles(const RoleContext& context, Transport& exchange, const WorkerTask& worker,
              const SliceRecord& blank)
      : context_(context), worker_(worker), transport_(context, exchange) {
    for (const AssignedRole& assigned : context.request.roles) {
      parts_.push_back({assigned.role, blank});
    }
  }

  Status Run(SliceRecord* record) {
    {
      std::vector<std::unique_ptr<Task>> servers;
      for (Part& server : std::span(parts_).subspan(1)) {
        servers.push_back(context_.runtime.executor.Spawn(server.role.Name(),
                                                          [this, &server] { RunServer(&server); }));
      }
      RunPart(context_, &parts_.front());
    }  // joins
    *record = std::move(parts_.front().record);
    for (const Part& server : std::span(parts_).subspan(1)) {
      if (server.record.checkpoint) record->checkpoint = server.record.checkpoint;
      record->permanent = record->permanent || server.record.permanent;
      record->metrics.insert(server.record.metrics.begin(), server.record.metrics.end());
    }
    if (!failure_.ok()) return failure_;
    for (const Part& server : std::span(parts_).subspan(1)) {
      const SliceRecord& other = server.record;
      if (other.next_iteration == record->next_iteration && other.outcome == record->outcome)
        continue;
      return InternalError(server.role.Name() + " ended at iteration " +
                           std::to_string(other.next_iteration) + ", and the worker beside it at " +
                           std::to_string(record->next_iteration));
    }
    return OkStatus();
  }

 private:
  struct Part {
    Role role;
    SliceRecord record;
  };

  void RunServer(Part* part) {
    // What it spends is in the worker's phases: of the process, and while the worker waits.
    PhaseMeter phases(context_.runtime.clock, {}, context_.started);
    const RoleContext own = {context_.runtime, context_.store, context_.interrupt,
                             context_.request, context_.emit,  context_.stop_wanted,
                             context_.pace,    phases,         context_.started};
    RunPart(own, part);
  }

  void RunPart(const RoleContext& context, Part* part) {
    const Status status = RunRole(context, part->role, transport_, worker_, &part->record);
    if (status.ok()) return;
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = status;
    context_.interrupt.Abort();
  }

  const RoleContext& context_;
  const WorkerTask& worker_;
  LoopbackTransport transport_;
  std::vector<Part> parts_;
  std::mutex mutex_;  // guards the failure
  Status failure_;
};

}  // namespace

Status RunTrainingRoles(const RoleContext& context, Transport& exchange, const WorkerTask& worker,
                        SliceRecord* record) {
  const SliceRequest& request = context.request;
  if (request.plan.aggregation.placement == Placement::kDedicated) {
    return RunRole(context, request.role(), exchange, worker, record);
  }
  return HostedRoles(context, exchange, worker, *record).Run(record);
}

}  // namespace lambdadnn
