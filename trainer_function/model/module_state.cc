// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/module_state.h"

#include <ATen/ATen.h>
#include <torch/script.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "trainer_function/model/torch_support.h"

namespace lambdadnn {
namespace {

struct ModuleBuffer {
  torch::jit::Module owner;
  std::string attribute;  // of the owner
  std::string name;       // in the whole module: "layer1.norm.running_mean"
  at::Tensor value;       // a copy

  const void* module() const { return owner._ivalue().get(); }
  at::Tensor Current() const { return owner.attr(attribute).toTensor(); }
  bool HasChanged() const { return !at::equal(Current(), value); }
  void Assign(const at::Tensor& to) const {
    const at::Tensor current = Current();
    if (current.requires_grad()) {
      torch::jit::Module(owner).setattr(attribute, to.clone());  // leaves the step's graph behind
    } else {
      current.copy_(to);
    }
  }
};

struct Counter {
  ModuleBuffer buffer;  // with the file's value
  at::Tensor a_step;
};

std::string Joined(const std::string& module, const std::string& attribute) {
  return module.empty() ? attribute : module + "." + attribute;
}

Status CannotExchange(const ModuleBuffer& buffer, const std::string& why) {
  return InvalidArgumentError("spec.model.torchScript: the buffer " + buffer.name +
                              " changes in training and " + why);
}

std::optional<ElementType> TypeOf(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return ElementType::kF32;
    case at::kDouble:
      return ElementType::kF64;
    case at::kHalf:
      return ElementType::kF16;
    case at::kBFloat16:
      return ElementType::kBf16;
    case at::kLong:
      return ElementType::kI64;
    case at::kInt:
      return ElementType::kI32;
    case at::kShort:
      return ElementType::kI16;
    case at::kChar:
      return ElementType::kI8;
    case at::kByte:
      return ElementType::kU8;
    case at::kBool:
      return ElementType::kBool;
    default:
      return std::nullopt;
  }
}

}  // namespace

struct TrainedBuffers::Found {
  std::vector<ModuleBuffer> all;  // one that has several names comes once, under the first
  std::vector<ModuleBuffer> exchanged;
  std::vector<Counter> counters;
  int64_t size = 0;
};

TrainedBuffers::TrainedBuffers(const torch::jit::Module& module)
    : found_(std::make_unique<Found>()) {
  std::set<const void*> seen;
  for (const auto& owner : module.named_modules()) {
    for (const auto& own : owner.value.named_buffers(/*recurse=*/false)) {
      if (!seen.insert(own.value.unsafeGetTensorImpl()).second) continue;
      found_->all.push_back(
          {owner.value, own.name, Joined(owner.name, own.name), own.value.detach().clone()});
    }
  }
}

TrainedBuffers::~TrainedBuffers() = default;

int64_t TrainedBuffers::size() const { return found_->size; }

Status TrainedBuffers::FindAfterStep() {
  std::set<const void*> trained;  // modules of which a buffer has changed
  for (const ModuleBuffer& buffer : found_->all) {
    if (buffer.HasChanged()) trained.insert(buffer.module());
  }
  for (const ModuleBuffer& buffer : found_->all) {
    if (trained.count(buffer.module()) == 0) continue;
    const at::Tensor now = buffer.Current().detach();
    const bool changed = buffer.HasChanged();
    if (now.scalar_type() == at::kFloat) {
      if (now.sizes() != buffer.value.sizes()) {
        return CannotExchange(buffer, "takes another shape, which is not supported");
      }
      found_->exchanged.push_back(buffer);
      found_->size += now.numel();
    } else if (changed && at::isIntegralType(now.scalar_type(), /*includeBool=*/false)) {
      found_->counters.push_back({buffer, now - buffer.value});
    } else if (changed) {
      return CannotExchange(buffer, "is " + std::string(c10::toString(now.scalar_type())) +
                                        ", not Float; save the module after .float()");
    }
    buffer.Assign(buffer.value);
  }
  return OkStatus();
}

Status TrainedBuffers::CheckAfterEvaluation() const {
  for (const ModuleBuffer& buffer : found_->all) {
    if (!buffer.HasChanged()) continue;
    return InvalidArgumentError(
        "spec.model.torchScript: the buffer " + buffer.name +
        " changes in evaluation, too, as of a module that was traced in training mode; save it "
        "with torch.jit.script(module).save(FILE)");
  }
  return OkStatus();
}

void TrainedBuffers::Set(std::span<const float> flat, int64_t steps, ComputeDevice device) {
  LDNN_CHECK(std::ssize(flat) == found_->size, "wrong number of elements in buffers");
  at::NoGradGuard no_grad;
  if (found_->size > 0) {
    at::Tensor host = HostTensor({found_->size}, at::kFloat, device);
    std::memcpy(host.data_ptr<float>(), flat.data(), flat.size_bytes());
    const at::Tensor all = host.to(TorchDevice(device));
    int64_t begin = 0;
    for (const ModuleBuffer& buffer : found_->exchanged) {
      const int64_t elements = buffer.value.numel();
      buffer.Assign(all.narrow(0, begin, elements).view(buffer.value.sizes()));
      begin += elements;
    }
  }
  for (const Counter& counter : found_->counters) {
    counter.buffer.Assign(counter.buffer.value + counter.a_step * steps);
  }
}

void TrainedBuffers::Get(std::span<float> flat) const {
  LDNN_CHECK(std::ssize(flat) == found_->size, "wrong number of elements in buffers");
  if (found_->size == 0) return;
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (const ModuleBuffer& buffer : found_->exchanged) {
    parts.push_back(buffer.Current().detach().reshape({-1}));
  }
  const at::Tensor host = at::cat(parts).to(at::kCPU);
  LDNN_CHECK(host.numel() == found_->size, "a buffer has changed its size");
  std::memcpy(flat.data(), host.data_ptr<float>(), flat.size_bytes());
}

Result<StateTensor> ExportedTensor(const std::string& name, const at::Tensor& tensor) {
  const auto type = TypeOf(tensor.scalar_type());
  if (!type) {
    return InvalidArgumentError("spec.model.torchScript: " + name + " is " +
                                c10::toString(tensor.scalar_type()) +
                                ", which no safetensors file can hold");
  }
  const at::Tensor host = tensor.detach().to(at::kCPU).contiguous();
  StateTensor exported{name, *type, host.sizes().vec(), Bytes(host.nbytes())};
  if (!exported.data.empty()) {
    std::memcpy(exported.data.data(), host.data_ptr(), exported.data.size());
  }
  return exported;
}

Result<std::vector<StateTensor>> StateOf(const torch::jit::Module& module) {
  std::vector<StateTensor> state;
  for (const auto& named : module.named_parameters(/*recurse=*/true)) {
    LDNN_ASSIGN_OR_RETURN(StateTensor tensor, ExportedTensor(named.name, named.value));
    state.push_back(std::move(tensor));
  }
  for (const auto& named : module.named_buffers(/*recurse=*/true)) {
    LDNN_ASSIGN_OR_RETURN(StateTensor tensor, ExportedTensor(named.name, named.value));
    state.push_back(std::move(tensor));
  }
  return state;
}

}  // namespace lambdadnn
