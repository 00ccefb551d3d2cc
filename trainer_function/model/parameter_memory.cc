// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/parameter_memory.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "trainer_function/model/torch_support.h"

namespace lambdadnn {
namespace {

// Where a tensor may begin in the buffer, in elements (256 bytes): kernels for aligned memory are
// faster, and which one runs does not depend on the sizes of the tensors before.
constexpr int64_t kAlignment = 64;

size_t FloatBytes(int64_t elements) { return sizeof(float) * static_cast<size_t>(elements); }

}  // namespace

struct ParameterMemory::OnGpu {
  std::vector<int64_t> offsets;  // of the tensors in `buffer`, in elements
  at::Tensor buffer;
  at::Tensor staging;  // the host's side of every copy

  at::Tensor HostPart(int64_t elements) const { return staging.narrow(0, 0, elements); }
  float* HostAddress(size_t tensor) const { return staging.data_ptr<float>() + offsets[tensor]; }
};

ParameterMemory::ParameterMemory(const ParameterManifest& manifest, std::vector<at::Tensor> tensors,
                                 ComputeDevice device)
    : manifest_(manifest), tensors_(std::move(tensors)) {
  if (device == ComputeDevice::kCpu) return;
  at::NoGradGuard no_grad;
  gpu_ = std::make_unique<OnGpu>();
  int64_t end = 0;
  for (const ParameterInfo& parameter : manifest_) {
    gpu_->offsets.push_back(end);
    end += (parameter.size + kAlignment - 1) / kAlignment * kAlignment;
  }
  gpu_->buffer = at::zeros({end}, at::TensorOptions(at::kFloat).device(TorchDevice(device)));
  // Beside the gradient its loss.
  gpu_->staging = HostTensor({end + 1}, at::kFloat, device).zero_();
  for (size_t i = 0; i < manifest_.size(); ++i) {
    const at::Tensor part =
        gpu_->buffer.narrow(0, gpu_->offsets[i], manifest_[i].size).view(manifest_[i].shape);
    part.copy_(tensors_[i].detach());
    tensors_[i].set_data(part.detach());
  }
}

ParameterMemory::~ParameterMemory() = default;

void ParameterMemory::Set(const SplitVector& flat) {
  for (size_t i = 0; i < manifest_.size(); ++i) {
    float* const to = gpu_ == nullptr ? tensors_[i].data_ptr<float>() : gpu_->HostAddress(i);
    flat.CopyTo(manifest_[i].offset, {to, static_cast<size_t>(manifest_[i].size)});
  }
  if (gpu_ == nullptr) return;
  at::NoGradGuard no_grad;
  gpu_->buffer.copy_(gpu_->HostPart(gpu_->buffer.numel()));
}

void ParameterMemory::Get(std::span<float> flat) const {
  if (gpu_ != nullptr) {
    at::NoGradGuard no_grad;
    gpu_->HostPart(gpu_->buffer.numel()).copy_(gpu_->buffer);
  }
  for (size_t i = 0; i < manifest_.size(); ++i) {
    const float* const from =
        gpu_ == nullptr ? tensors_[i].data_ptr<float>() : gpu_->HostAddress(i);
    std::memcpy(flat.data() + manifest_[i].offset, from, FloatBytes(manifest_[i].size));
  }
}

double ParameterMemory::TakeGradient(const at::Tensor& loss, std::span<float> gradient) {
  if (gpu_ != nullptr) return TakeFromGpu(loss, gradient);
  for (size_t i = 0; i < manifest_.size(); ++i) {
    float* const to = gradient.data() + manifest_[i].offset;
    at::Tensor& slope = tensors_[i].mutable_grad();
    if (!slope.defined()) {
      std::fill_n(to, manifest_[i].size, 0.0f);
      continue;
    }
    const at::Tensor whole = slope.contiguous();
    std::memcpy(to, whole.data_ptr<float>(), FloatBytes(manifest_[i].size));
    slope.reset();
  }
  return loss.item<double>();
}

// One copy for the loss, too: each waits for the GPU.
double ParameterMemory::TakeFromGpu(const at::Tensor& loss, std::span<float> gradient) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (size_t i = 0; i < manifest_.size(); ++i) {
    at::Tensor& slope = tensors_[i].mutable_grad();
    parts.push_back(slope.defined() ? slope.reshape({-1})
                                    : at::zeros({manifest_[i].size}, gpu_->buffer.options()));
    slope.reset();
  }
  parts.push_back(loss.detach().reshape({1}));
  const auto size = static_cast<int64_t>(gradient.size());
  const at::Tensor host = gpu_->HostPart(size + 1);
  host.copy_(at::cat(parts));
  std::memcpy(gradient.data(), host.data_ptr<float>(), FloatBytes(size));
  return static_cast<double>(host.data_ptr<float>()[size]);
}

}  // namespace lambdadnn
