// A pattern of flows in ns-3: point-to-point links, IPv4 and UDP, as fast as ns-3 does it.
//
// It does less than an endpoint of rankwire, and on purpose nothing that would cost it time: no
// queue discs, no checksums, no logging, no acknowledgements, no congestion control; a router looks
// its port up in a table instead of walking a list of routes. Queues are unlimited, so nothing is
// lost and nothing is sent twice.
//
//     ns3_peer FILE
//
// FILE, numbers and names separated by white space:
//
//     payload_bytes N        UDP payload of a packet
//     hosts N switches N
//     link A B RATE_BPS DELAY_PS      nodes: hosts from 0, then switches
//     route NODE HOST PEER            the neighbour over which NODE reaches HOST
//     flow SOURCE DESTINATION PACKETS RATE_BPS
//     end
//
// Prints one JSON object: events, packet_hops (packets handed to a node at the end of a link),
// packets received by their destinations, simulated seconds, and the wall and processor seconds of
// the simulation itself.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace ns3;

namespace {

constexpr uint32_t ADDRESS_BASE = 0x0a000001; // Host h is 10.0.0.1 + h, whatever its link.
constexpr uint16_t PORT = 4791;

uint64_t packetHops = 0;
uint64_t packetsReceived = 0;

// Looks the egress port of a destination up in a table: constant time for any number of routes.
class TableRouting : public Ipv4RoutingProtocol
{
  public:
    explicit TableRouting(uint32_t hosts)
        : m_routes(hosts)
    {
    }

    void Add(uint32_t host, Ptr<NetDevice> device)
    {
        Ptr<Ipv4Route> route = Create<Ipv4Route>();
        route->SetDestination(Ipv4Address(ADDRESS_BASE + host));
        route->SetSource(Ipv4Address(ADDRESS_BASE + m_self));
        route->SetGateway(Ipv4Address::GetZero());
        route->SetOutputDevice(device);
        m_routes[host] = route;
    }

    void SetSelf(uint32_t node)
    {
        m_self = node;
    }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>,
                               const Ipv4Header& header,
                               Ptr<NetDevice>,
                               Socket::SocketErrno& error) override
    {
        error = Socket::ERROR_NOTERROR;
        return m_routes[Host(header)];
    }

    bool RouteInput(Ptr<const Packet> packet,
                    const Ipv4Header& header,
                    Ptr<const NetDevice> device,
                    UnicastForwardCallback forward,
                    MulticastForwardCallback,
                    LocalDeliverCallback deliver,
                    ErrorCallback) override
    {
        ++packetHops;
        uint32_t host = Host(header);
        if (host == m_self)
        {
            deliver(packet, header, m_ipv4->GetInterfaceForDevice(device));
        }
        else
        {
            forward(m_routes[host], packet, header);
        }
        return true;
    }

    void SetIpv4(Ptr<Ipv4> ipv4) override
    {
        m_ipv4 = ipv4;
    }

    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

  private:
    static uint32_t Host(const Ipv4Header& header)
    {
        return header.GetDestination().Get() - ADDRESS_BASE;
    }

    std::vector<Ptr<Ipv4Route>> m_routes;
    uint32_t m_self = 0;
    Ptr<Ipv4> m_ipv4;
};

// Sends packets of one size at one rate.
class Sender
{
  public:
    Sender(Ptr<Socket> socket, uint32_t payloadBytes, uint64_t packets, Time interval)
        : m_socket(socket),
          m_payloadBytes(payloadBytes),
          m_left(packets),
          m_interval(interval)
    {
        Simulator::ScheduleWithContext(socket->GetNode()->GetId(), Time(0), &Sender::Send, this);
    }

    void Send()
    {
        m_socket->Send(Create<Packet>(m_payloadBytes));
        if (--m_left > 0)
        {
            Simulator::Schedule(m_interval, &Sender::Send, this);
        }
    }

  private:
    Ptr<Socket> m_socket;
    uint32_t m_payloadBytes;
    uint64_t m_left;
    Time m_interval;
};

void
Receive(Ptr<Socket> socket)
{
    while (socket->Recv())
    {
        ++packetsReceived;
    }
}

[[noreturn]] void
Refuse(const std::string& what)
{
    std::cerr << "ns3_peer: " << what << std::endl;
    std::exit(2);
}

// The network and its flows, built line by line from the description.
class Network
{
  public:
    void Read(std::istream& input)
    {
        std::string word;
        while (input >> word && word != "end")
        {
            if (word == "payload_bytes")
            {
                input >> m_payloadBytes;
            }
            else if (word == "hosts")
            {
                uint32_t switches;
                input >> m_hosts >> word >> switches;
                Create_(m_hosts + switches);
            }
            else if (word == "link")
            {
                Link(input);
            }
            else if (word == "route")
            {
                uint32_t node, host, peer;
                input >> node >> host >> peer;
                m_routing[node]->Add(host, m_devices.at({node, peer}));
            }
            else if (word == "flow")
            {
                Flow(input);
            }
            else
            {
                Refuse("unknown word " + word);
            }
        }
        if (!input || word != "end")
        {
            Refuse("the description is cut off");
        }
    }

  private:
    void Create_(uint32_t nodes)
    {
        m_nodes.Create(nodes);
        InternetStackHelper internet;
        internet.SetIpv6StackInstall(false);
        internet.Install(m_nodes);
        for (uint32_t node = 0; node < nodes; ++node)
        {
            Ptr<TableRouting> routing = Create<TableRouting>(m_hosts);
            routing->SetSelf(node);
            Ipv4Of(node)->SetRoutingProtocol(routing);
            m_routing.push_back(routing);
        }
    }

    Ptr<Ipv4> Ipv4Of(uint32_t node) const
    {
        return m_nodes.Get(node)->GetObject<Ipv4>();
    }

    void Link(std::istream& input)
    {
        uint32_t a, b;
        uint64_t rateBps, delayPs;
        input >> a >> b >> rateBps >> delayPs;
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rateBps)));
        link.SetDeviceAttribute("Mtu", UintegerValue(9000));
        link.SetChannelAttribute("Delay", TimeValue(PicoSeconds(delayPs)));
        link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("100000000p"));
        link.DisableFlowControl();
        NetDeviceContainer devices = link.Install(m_nodes.Get(a), m_nodes.Get(b));
        Attach(a, b, devices.Get(0));
        Attach(b, a, devices.Get(1));
    }

    void Attach(uint32_t node, uint32_t peer, Ptr<NetDevice> device)
    {
        Ptr<Ipv4> ipv4 = Ipv4Of(node);
        uint32_t interface = ipv4->AddInterface(device);
        ipv4->AddAddress(interface,
                         Ipv4InterfaceAddress(Ipv4Address(ADDRESS_BASE + node), Ipv4Mask("/8")));
        ipv4->SetUp(interface);
        m_devices[{node, peer}] = device;
    }

    void Flow(std::istream& input)
    {
        uint32_t source, destination;
        uint64_t packets, rateBps;
        input >> source >> destination >> packets >> rateBps;
        Listen(destination);
        Ptr<Socket> socket =
            Socket::CreateSocket(m_nodes.Get(source), UdpSocketFactory::GetTypeId());
        socket->Bind();
        socket->Connect(InetSocketAddress(Ipv4Address(ADDRESS_BASE + destination), PORT));
        // IPv4 20, UDP 8 and the point-to-point header's 2 bytes around the payload.
        Time interval = DataRate(rateBps).CalculateBytesTxTime(m_payloadBytes + 30);
        new Sender(socket, m_payloadBytes, packets, interval);
    }

    void Listen(uint32_t host)
    {
        if (!m_listening.emplace(host, nullptr).second)
        {
            return;
        }
        Ptr<Socket> socket = Socket::CreateSocket(m_nodes.Get(host), UdpSocketFactory::GetTypeId());
        socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
        socket->SetAttribute("RcvBufSize", UintegerValue(1u << 30));
        socket->SetRecvCallback(MakeCallback(&Receive));
        m_listening[host] = socket;
    }

    uint32_t m_payloadBytes = 0;
    uint32_t m_hosts = 0;
    NodeContainer m_nodes;
    std::vector<Ptr<TableRouting>> m_routing;
    std::map<std::pair<uint32_t, uint32_t>, Ptr<NetDevice>> m_devices;
    std::map<uint32_t, Ptr<Socket>> m_listening;
};

} // namespace

int
main(int argc, char** argv)
{
    if (argc != 2)
    {
        Refuse("give one file");
    }
    Time::SetResolution(Time::PS);
    std::ifstream input(argv[1]);
    Network network;
    network.Read(input);
    auto start = std::chrono::steady_clock::now();
    std::clock_t startClock = std::clock();
    Simulator::Run();
    std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    double processor = static_cast<double>(std::clock() - startClock) / CLOCKS_PER_SEC;
    std::printf("{\"events\": %llu, \"packet_hops\": %llu, \"packets_received\": %llu, "
                "\"simulated_seconds\": %.9g, \"wall_seconds\": %.9g, "
                "\"processor_seconds\": %.9g}\n",
                static_cast<unsigned long long>(Simulator::GetEventCount()),
                static_cast<unsigned long long>(packetHops),
                static_cast<unsigned long long>(packetsReceived),
                Simulator::Now().GetSeconds(),
                wall.count(),
                processor);
    Simulator::Destroy();
    return 0;
}
